"""The command ``linkwise``. Needs the extra ``cli`` (click, tqdm, pandas).

`commands` declares what can be typed and imports nothing heavy, so that ``--help`` and the shell's
completion answer at once; each command does its work in a module of its own.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from linkwise._optional import require

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

MISSING_LIBRARY = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, default=None
        What was typed after ``linkwise``; by default the arguments of this process.
    """
    try:
        require("click", extra="cli", purpose="The command line")
    except ImportError as error:
        print(f"Error: {error}", file=sys.stderr)
        return MISSING_LIBRARY
    commands = require("linkwise.cli.commands", extra="cli", purpose="The command line")
    code: int = commands.run(sys.argv[1:] if arguments is None else list(arguments))
    return code
