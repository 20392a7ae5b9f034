"""``python -m linkwise``: the same as the command ``linkwise``."""

from __future__ import annotations

import sys

from linkwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
