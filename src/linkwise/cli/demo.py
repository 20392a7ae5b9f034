"""``linkwise demo``: the main job on built-in data."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING

from linkwise.demo import main

if TYPE_CHECKING:
    from pathlib import Path

    from linkwise.cli.console import Console


def run(console: Console, folder: Path) -> None:
    """Run the demo; its table is the result, so --quiet does not hide it."""
    if not console.json:
        main(str(folder))
        return
    with contextlib.redirect_stdout(io.StringIO()):
        main(str(folder))
    console.summary({"command": "demo", "folder": str(folder)})
