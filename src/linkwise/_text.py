"""What the beginning of a text file tells: whether it is text, and what separates its columns."""

from __future__ import annotations

import csv

DELIMITERS = (",", ";", "\t", "|")
ZIP_MARK, OLE_MARK = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # .xlsx, and .xls of old Excel


def delimiter_of(header: str, usual: str = ",") -> str:
    """Return what separates the columns of a first line: the usual mark, or one that finds more.

    >>> delimiter_of("a,b,c"), delimiter_of("a;b,c;d"), delimiter_of("a")
    (',', ';', ',')
    """
    marks = dict.fromkeys((usual, *DELIMITERS))
    return max(marks, key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))
