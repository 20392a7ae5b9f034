"""Any value as a text that a page can hold."""

from __future__ import annotations

from typing import Any

LONGEST_TEXT = 200  # characters of an identifier, name or parameter that are shown


def plain(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return a value as text that any page can hold: no control characters, not endless.

    Examples
    --------
    >>> plain("one" + chr(9) + "line" + 500 * "!", longest=9)
    'one line!…'
    """
    text = str(value)
    if len(text) <= longest and text.isprintable():
        return text  # nearly always, and there may be millions
    if len(text) > longest:
        text = text[:longest] + "…"
    # Lone surrogates cannot be written to a file.
    text = text.encode("utf-8", "replace").decode("utf-8")
    clean = (
        " " if c in "\t\n\r" else c if ord(c) > 159 or c.isprintable() else "\ufffd" for c in text
    )
    return "".join(clean)


def name_of(value: Any) -> str:
    """Return a value as a name, which is never empty."""
    return plain(value) or "(empty)"
