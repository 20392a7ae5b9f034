"""Time budgets of the annotation page: from the key to the frame after the map is drawn.

``python benchmarks/page.py [1000 10000 100000]`` starts a server for each size, answers in a real
Chromium, and prints a table for docs/benchmarks.md. Needs the packages playwright and chromium.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import sync_playwright
from sklearn.datasets import make_blobs

N_ANSWERS = 25
N_FRAMES = 15
HEADER = (
    "samples", "page usable", "first question", "first clusters of Auto",
    "key to next question and map, p50", "p95", "map frame, p95", "Auto again",
    "memory at the start", "in the end",
)  # fmt: skip


def main(sizes: list[int]) -> None:
    load = os.getloadavg()[0]
    print(f"| {' | '.join(HEADER)} |\n|{'--:|' * len(HEADER)}")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            print(f"| {' | '.join(measured(n, Path(folder)))} |", flush=True)
    print(f"\nLoad of the machine: {load:.1f} before, {os.getloadavg()[0]:.1f} after.")


def measured(n: int, folder: Path) -> list[str]:
    """Return a row of the table."""
    X, _ = make_blobs(n, centers=8, n_features=10, cluster_std=3.0, random_state=0)
    path = folder / "data.npy"
    np.save(path, X)
    started = time.perf_counter()
    command = [sys.executable, "-m", "linkwise", "serve", str(path), "-k", "8", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(
                found[0] for line in server.stdout if (found := re.search(r"http\S+", line))
            )
            return [f"{n:,}", *in_browser(address, started, server.pid, X.nbytes)]
        finally:
            server.terminate()


def in_browser(address: str, started: float, pid: int, n_bytes: int) -> list[str]:
    server = psutil.Process(pid)

    def so_far() -> str:
        spent = server.cpu_times()
        return f"{time.perf_counter() - started:.1f} s ({spent.user + spent.system:.1f} CPU s)"

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(address)
        until(page, "!!linkwise.map.xy")
        usable, at_start = so_far(), server.memory_info().rss - n_bytes
        page.wait_for_selector("[data-pair]", timeout=120_000)
        question = so_far()
        until(page, "linkwise.page.state.stop.still !== null", 400)
        first = so_far()
        page.wait_for_timeout(1_000)
        latency = [answer(page, "yn"[k % 2]) for k in range(N_ANSWERS)]
        until(page, "!document.getElementById('doing').textContent", 400)
        again = page.evaluate("fetch('/api/quality').then((r) => r.json()).then((q) => q.seconds)")
        frames = [
            page.evaluate("linkwise.map.draw(), linkwise.map.lastDraw") for _ in range(N_FRAMES)
        ]
        memory = server.memory_info().rss - n_bytes
        browser.close()
    return [
        usable,
        question,
        first,
        f"{np.median(latency):.0f} ms",
        f"{np.quantile(latency, 0.95):.0f} ms",
        f"{np.quantile(frames, 0.95):.0f} ms",
        f"{again:.1f} s",
        f"{at_start / 1e6:.0f} MB",
        f"{memory / 1e6:.0f} MB",
    ]


def answer(page: object, key: str) -> float:
    """Answer one question; returns milliseconds from the key to the frame after the repaint."""
    page.evaluate("delete document.documentElement.dataset.latency")
    page.keyboard.press(key)
    until(page, "!!document.documentElement.dataset.latency")
    latency = float(page.evaluate("document.documentElement.dataset.latency"))
    page.wait_for_timeout(600)  # a person takes longer
    return latency


def until(page: object, expression: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not page.evaluate(f"globalThis.linkwise && ({expression})"):
        if time.monotonic() > end:
            raise TimeoutError(expression)
        page.wait_for_timeout(10)


if __name__ == "__main__":
    main([int(text) for text in sys.argv[1:]] or [1_000, 10_000, 100_000])
