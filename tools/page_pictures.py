"""Take the pictures of the annotation page for README and guide, with a real browser.

``python tools/page_pictures.py`` serves built-in data, answers by the truth, and writes to
docs/images. Needs the packages playwright and chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits, load_wine

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DESKTOP, PHONE = {"width": 1440, "height": 860}, {"width": 390, "height": 844}


class Serving:
    """``linkwise serve`` on a table, until the end of a `with` statement."""

    def __init__(self, path: Path, *options: str) -> None:
        command = [sys.executable, "-m", "linkwise", "serve", str(path), *options, "--no-browser"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(r"http\S+", line):
                return found[0]
        raise RuntimeError("The server did not start.")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(timeout=20)


def settle(page) -> None:
    """Wait until the clusters rest on all answers."""
    page.wait_for_timeout(500)
    for _ in range(600):
        if page.evaluate("!document.getElementById('doing').textContent"):
            break
        page.wait_for_timeout(100)
    page.wait_for_timeout(1_500)  # rings around what moved fade


def answer(page, truth, n_answers: int) -> None:
    """Answer by the truth."""
    for _ in range(n_answers):
        a, b = map(int, page.get_attribute("#question", "data-pair").split("-"))
        page.keyboard.press("y" if truth[a] == truth[b] else "n")
        page.wait_for_timeout(700)
    settle(page)


def take(browser, address: str, truth) -> None:
    """Take the pictures of the digits: many items, a phone, a conflict."""
    page = browser.new_page(viewport=DESKTOP)
    page.goto(address)
    page.wait_for_selector("[data-pair]", timeout=120_000)
    settle(page)
    answer(page, truth, 20)
    page.screenshot(path=IMAGES / "page.png")
    page.click("#tab-quality")
    page.wait_for_timeout(400)
    page.locator(".panel").screenshot(path=IMAGES / "page-quality.png")
    page.click("#tab-clusters")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    page.wait_for_timeout(600)
    page.screenshot(path=IMAGES / "page-phone.png")
    page.close()


def take_conflict(browser, address: str, truth) -> None:
    """Take the pictures of a table: aligned fields, and a contradiction."""
    page = browser.new_page(viewport=DESKTOP)
    page.goto(address)
    page.wait_for_selector("[data-pair]", timeout=120_000)
    settle(page)
    answer(page, truth, 4)
    for a, b, key in [(0, 1, "y"), (1, 2, "y"), (0, 2, "n")]:
        ask = "async ([a, b]) => (await import('/static/api.js')).post('/api/ask', { a, b })"
        page.evaluate(ask, [a, b])
        page.evaluate("sessionStorage.removeItem('linkwise-question')")
        page.reload()
        page.wait_for_selector(f"[data-pair='{a}-{b}']")
        page.wait_for_timeout(300)
        page.keyboard.press(key)
        page.wait_for_timeout(600)
    settle(page)
    page.keyboard.press("g")
    page.wait_for_timeout(700)
    page.screenshot(path=IMAGES / "page-conflict.png")
    page.close()


def main() -> None:
    """Write all pictures."""
    digits, wine = load_digits(as_frame=True).frame, load_wine(as_frame=True).frame
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        path = Path(folder) / "digits.csv"
        digits.to_csv(path, index=False)
        options = ("-k", "10", "--truth", "target", "--image", "8x8", "--no-scale")
        with Serving(path, *options) as address:
            take(browser, address, digits["target"])
        path = Path(folder) / "wine.csv"
        wine.round(2).to_csv(path, index=False)
        with Serving(path, "-k", "3", "--truth", "target") as address:
            take_conflict(browser, address, wine["target"])
        browser.close()


if __name__ == "__main__":
    main()
