"""What the beginning of a text file tells: whether it is text, and what separates its columns."""

from __future__ import annotations

import csv

WINDOWS = "cp1252"  # what Excel writes in Western Europe and America
WINDOWS_NOTE = "is not UTF-8, so it is read as cp1252, the text of Windows"
DELIMITERS = (",", ";", "\t", "|")
ZIP_MARK, OLE_MARK = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"  # .xlsx, and .xls of old Excel


def is_windows_text(content: bytes, asked: str = "utf-8") -> bool:
    r"""Whether bytes that are no UTF-8 are text of Windows, unless another encoding was asked for.

    >>> is_windows_text("Müller".encode("cp1252")), is_windows_text(b"\xff\x00\x01")
    (True, False)
    """
    if asked.lower() not in {"utf-8", "utf8"}:
        return False
    try:
        text = content.decode(WINDOWS)
    except UnicodeDecodeError:
        return False
    return not any(mark < " " and mark not in "\t\r\n" for mark in set(text))


def delimiter_of(header: str, usual: str = ",") -> str:
    """Return what separates the columns of a first line: the usual mark, or one that finds more.

    >>> delimiter_of("a,b,c"), delimiter_of("a;b,c;d"), delimiter_of("a")
    (',', ';', ',')
    """
    marks = dict.fromkeys((usual, *DELIMITERS))
    return max(marks, key=lambda mark: len(next(csv.reader([header], delimiter=mark), [])))
