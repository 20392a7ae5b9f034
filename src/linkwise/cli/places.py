"""Where a row is, as people count: lines of a text file, rows of a sheet, else from 0."""

from __future__ import annotations

import csv
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.cli.sources import Source

TEXT = frozenset({".csv", ".tsv", ".tab", ".txt"})
SHEETS = frozenset({".xlsx"})
HEADER = 2  # the number of the first row below a header, counted from 1
SHOWN = 5  # rows in a message


class Places:
    """Names the rows of a table in messages.

    Parameters
    ----------
    source : Source or None
        The file; None for what has no lines.
    delimiter, encoding : str
        How a text file was read.
    """

    def __init__(
        self, source: Source | None = None, delimiter: str = ",", encoding: str = "utf-8"
    ) -> None:
        self.source, self.delimiter, self.encoding = source, delimiter, encoding

    def __call__(self, rows: Sequence[int], names: Sequence[str] | None = None) -> str:
        """Return where rows are, such as "line 12 (c10)"; `names` are those of all rows."""
        suffix = "" if self.source is None else self.source.suffix
        unit = "line" if suffix in TEXT else "row"
        some = [self._number(row, suffix) for row in rows[:SHOWN]]
        if names is not None:
            some = [f"{at} ({names[row]})" for at, row in zip(some, rows, strict=False)]
        listed = ", ".join(some) + ", ..." * (len(rows) > SHOWN)
        counted = "" if suffix in TEXT | SHEETS else ", counted from 0"
        return f"{unit}{'s' * (len(rows) > 1)} {listed}{counted}"

    def _number(self, row: int, suffix: str) -> str:
        if suffix in SHEETS:
            return str(row + HEADER)
        if suffix in TEXT and row < len(self._lines):
            return str(self._lines[row])
        return str(row + HEADER if suffix in TEXT else row)

    @cached_property
    def _lines(self) -> list[int]:
        """The line where each row begins: blank lines are no rows, and a cell may have several."""
        assert self.source is not None
        lines, before = [], 0
        with self.source.text(self.source.encoding(self.encoding)) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            try:
                for cells in reader:
                    if any(cell.strip() for cell in cells) or len(cells) > 1:
                        lines.append(before + 1)
                    before = reader.line_num
            except (csv.Error, UnicodeError):  # rows after it are counted without it
                return []
        return lines[1:]
