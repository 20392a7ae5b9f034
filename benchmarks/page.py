"""Time budgets of the annotation page: every row of the table of targets, in a real browser.

``python benchmarks/page.py [1000 10000 100000]`` starts a server for each size, answers in a real
Chromium, and prints a table for docs/benchmarks.md. Needs the packages playwright and chromium.

Times of keys are from the key to the second frame after the change: what was drawn is then on the
screen. The browser is open before the server starts, as it is for most people.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import sync_playwright
from sklearn.datasets import make_blobs

N_ANSWERS = 30
N_CONFLICTS = 10
N_SOLVES = 5
N_FRAMES = 40
QUIET = 150  # ms after a key in which nobody asks the page anything: looking takes time, too
TARGETS = {  # at 1,000, 10,000 and 100,000 samples
    "page usable, s": (1, 2, 6),
    "first question, s": (1.5, 3, 10),
    "key to next question, p95, ms": (50, 50, 100),
    "key to map, p95, ms": (100, 150, 400),
    "full clustering shown again, s": (0.3, 1.5, 10),
    "conflict shown, p95, ms": (50, 50, 100),
    "map frame, p95, ms": (8, 8, 16),
    "server memory above the data, MB": (100, 150, 400),
}
SHOWN = "linkwise.page.state.full && linkwise.page.shown >= linkwise.page.state.rev"
LIBRARIES = "numpy, scipy.sparse.linalg, sklearn.cluster, numba"
WATCH = """() => {
  const marks = globalThis.marks = {};
  let pressed = 0;
  const frame = (name, from) => requestAnimationFrame(() => requestAnimationFrame(() => {
    if (from === pressed) marks[name] ??= performance.now() - from; // else of the key before
  }));
  addEventListener("keydown", (event) => {
    pressed = event.timeStamp;
    for (const name of Object.keys(marks)) delete marks[name];
    delete document.documentElement.dataset.latency;
  }, true);
  const see = (id, name, options) => new MutationObserver(() => frame(name, pressed))
    .observe(document.getElementById(id), options);
  see("question", "question", { attributeFilter: ["data-pair"] });
  see("badge", "conflict", { childList: true, characterData: true, subtree: true });
}"""


def main(sizes: list[int]) -> None:
    load, before = os.getloadavg()[0], psutil.cpu_times()
    with chromium() as browser, tempfile.TemporaryDirectory() as folder:
        rows = [measured(browser, n, Path(folder) / str(n)) for n in sizes]
    print(f"| | {' | '.join(f'{n:,}' for n in sizes)} |\n|---|{'--:|' * len(sizes)}")
    for name in rows[0]:
        cells = [f"{row[name]:.3g}" if row[name] < 100 else f"{row[name]:.0f}" for row in rows]
        targets = TARGETS.get(name.removesuffix(" (server)"))
        aim = f" (target {' / '.join(map(str, targets))})" if targets else ""
        print(f"| {name}{aim} | {' | '.join(cells)} |")
    print(f"\nMemory of an interpreter that has imported {LIBRARIES} and nothing else: ", end="")
    print(f"{memory_of_libraries():.0f} MB.")
    after = psutil.cpu_times()
    stolen = getattr(after, "steal", 0.0) - getattr(before, "steal", 0.0)
    share = stolen / (sum(after) - sum(before))
    print(f"Load of the machine: {load:.1f} before, {os.getloadavg()[0]:.1f} after; ", end="")
    print(f"{share:.0%} of its time was given to other machines.")


@contextmanager
def chromium() -> object:
    """Give a browser that is open and warm: it has drawn a page before."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.goto("data:text/html,<canvas></canvas>")
        yield browser
        browser.close()


def memory_of_libraries() -> float:
    code = f"import {LIBRARIES}, psutil; print(psutil.Process().memory_info().rss / 1e6)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measured(browser: object, n: int, folder: Path) -> dict[str, float]:
    """Return the figures of one size, by their names."""
    folder.mkdir()
    X, truth = make_blobs(n, centers=8, n_features=10, cluster_std=3.0, random_state=0)
    path = folder / "data.npy"
    np.save(path, X)
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    started = time.perf_counter()
    command = [sys.executable, "-m", "linkwise", "serve", str(path), "-k", "8", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(
                found[0] for line in server.stdout if (found := re.search(r"http\S+", line))
            )
            printed = time.perf_counter() - started
            page.truth = truth
            figures = in_browser(page, address, started, Memory(server.pid, X.nbytes))
            return {"address printed, s": printed, **figures}
        finally:
            page.close()
            server.terminate()


class Memory:
    """What the server and the processes that it started take, without the data."""

    def __init__(self, pid: int, n_bytes: int) -> None:
        self.server, self.n_bytes = psutil.Process(pid), n_bytes

    def figures(self) -> dict[str, float]:
        """Return megabytes; each process has the data once."""
        others = self.server.children(recursive=True)
        own, other = (
            sum(max(one.memory_info().rss - self.n_bytes, 0) for one in group) / 1e6
            for group in ([self.server], others)
        )
        return {
            "server memory above the data, MB": own,
            "memory of the process that clusters above the data, MB": other,
        }


def in_browser(page: object, address: str, started: float, memory: Memory) -> dict[str, float]:
    def so_far() -> float:
        return time.perf_counter() - started

    page.goto(address)
    until(page, "!!linkwise.map.xy")
    figures = {"page usable, s": so_far()}
    page.wait_for_selector("[data-pair]", timeout=120_000)
    figures["first question, s"] = so_far()
    page.evaluate(WATCH)
    early = keys(page, 5)  # while everything is being imported, and the first clusters are found
    until(page, "linkwise.page.state.stop.still !== null", 400)
    figures["first clusters of Auto, s"] = so_far()
    idle(page)
    latency = keys(page, N_ANSWERS)
    for name, mark in (("next question", "question"), ("map", "map")):
        figures[f"key to {name}, p50, ms"] = np.median(latency[mark])
        figures[f"key to {name}, p95, ms"] = np.quantile(latency[mark], 0.95)
        figures[f"key to {name}, the slowest of the first five, ms"] = max(early[mark])
    idle(page)
    solves = [solve(page) for _ in range(N_SOLVES)]
    figures["full clustering shown again, s"] = np.median(solves)
    figures["full clustering shown again, the slowest, s"] = max(solves)
    shown = [conflict(page, k) for k in range(N_CONFLICTS)]
    figures["conflict shown, p95, ms"] = np.quantile(shown, 0.95)
    zoomed = "() => (linkwise.map.zoom(1.01), linkwise.map.lastDraw)"
    frames = page.evaluate(f"Array.from({{length: {N_FRAMES}}}, {zoomed})")
    figures["map frame, p95, ms"] = np.quantile(frames, 0.95)
    idle(page)
    return figures | memory.figures()


def keys(page: object, n: int) -> dict[str, list[float]]:
    """Answer questions; return milliseconds to the next question and to the map."""
    found = {"question": [], "map": []}
    for _ in range(n):
        answer(page)
        page.wait_for_timeout(QUIET)
        until(page, "!!document.documentElement.dataset.latency && marks.question")
        found["map"].append(float(page.evaluate("document.documentElement.dataset.latency")))
        found["question"].append(page.evaluate("marks.question"))
        page.wait_for_timeout(450)  # a person takes longer
    return found


def answer(page: object) -> None:
    """Press the key that is right."""
    a, b = page.evaluate("[linkwise.page.question.a, linkwise.page.question.b]")
    page.keyboard.press("y" if page.truth[a] == page.truth[b] else "n")


def solve(page: object) -> float:
    """Answer until clusters are found again; return seconds from that key to their being shown.

    A clustering that took long is not repeated after every answer.
    """
    doing = "document.getElementById('doing').textContent"
    while True:
        pressed = time.perf_counter()
        answer(page)
        until(page, "!!marks.question")
        if not within(page, f"({SHOWN}) || !!{doing}", 0.5):
            continue
        until(page, f"({SHOWN}) || !{doing}", 400)
        if within(page, SHOWN, 1.0):  # what it did ends a moment before its clusters are shown
            seconds = time.perf_counter() - pressed
            idle(page)
            return seconds


def conflict(page: object, k: int) -> float:
    """Say that two are different that are the same by two other answers."""
    a, b, c = np.flatnonzero(page.truth == 0)[3 * k : 3 * k + 3].tolist()
    page.evaluate(
        """async ([a, b, c]) => {
          const headers = { "Content-Type": "application/json", "X-Tab": linkwise.tab };
          const send = (path, body) => fetch(path, { method: "POST", headers,
            body: JSON.stringify({ uuid: crypto.randomUUID(), ...body }) });
          await send("/api/answers", { a, b, relation: "same" });
          await send("/api/answers", { a: b, b: c, relation: "same" });
          await linkwise.again(a, c);
        }""",
        [a, b, c],
    )
    until(page, f"linkwise.page.question?.id === '{a}-{c}'")
    page.wait_for_timeout(300 + 50 * k)  # the clusters are new after some 300 ms: now and then just
    before = page.evaluate("linkwise.page.state.conflicts")
    page.keyboard.press("n")
    page.wait_for_timeout(QUIET)
    until(page, f"!!marks.conflict && linkwise.page.state.conflicts > {before}")
    shown = float(page.evaluate("marks.conflict"))
    page.wait_for_timeout(300)
    return shown


def idle(page: object) -> None:
    until(page, "!document.getElementById('doing').textContent", 400)
    page.wait_for_timeout(1_000)


def until(page: object, expression: str, seconds: float = 120.0) -> None:
    if not within(page, expression, seconds):
        raise TimeoutError(expression)


def within(page: object, expression: str, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (holds := page.evaluate(f"!!(globalThis.linkwise && ({expression}))")):
        if time.monotonic() > end:
            break
        page.wait_for_timeout(5)
    return holds


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [1_000, 10_000, 100_000])
