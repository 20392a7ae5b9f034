"""Take the picture of the report for the guide, with a real browser: docs/images/report.png.

Run: python tools/report_picture.py (needs the packages playwright and chromium)
"""

from __future__ import annotations

import shutil
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from picture_parts import IMAGES
from PIL import Image
from playwright.sync_api import sync_playwright

from linkwise.demo import customers


def main():
    """Write the report of the demo, and photograph its first screen."""
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        customers(Path(folder))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1000, "height": 1420})
        page.goto((Path(folder) / "customers.html").as_uri())
        page.wait_for_timeout(1_000)
        taken = Image.open(BytesIO(page.screenshot())).convert("RGB")
        browser.close()
    taken.quantize(256, dither=Image.Dither.NONE).save(IMAGES / "report.png", optimize=True)


if __name__ == "__main__":
    main()
