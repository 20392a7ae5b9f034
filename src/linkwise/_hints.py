"""What somebody who wrote a wrong name probably meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 3  # names that are suggested


def hint(name: object, known: Iterable[str], *, listed: Iterable[str] = ()) -> str:
    """Return a sentence to end a message with, a space before it; empty if there is none.

    Parameters
    ----------
    name : object
        What was given.
    known : iterable of str
        What could have been given.
    listed : iterable of str, default=()
        What there is, to be named if nothing is similar.

    Examples
    --------
    >>> "There is no method 'ncuts'." + hint("ncuts", ["ncut", "signed"])
    "There is no method 'ncuts'. Did you mean 'ncut'?"
    >>> hint("xyz", ["ncut", "signed"])
    ''
    >>> hint("xyz", ["ncut", "signed"], listed=["ncut", "signed"])
    ' There are ncut, signed.'
    """
    text = str(name)
    known = list(known)
    near = [word for word in known if word.casefold() == text.casefold() != ""]
    near = near or get_close_matches(text, known, n=MOST)
    if not near:  # capitals are the most common difference
        folded = {word.casefold(): word for word in reversed(known)}
        near = [folded[word] for word in get_close_matches(text.casefold(), folded, n=MOST)]
    if near:
        return f" Did you mean {' or '.join(map(repr, near))}?"
    names = ", ".join(listed)
    return f" There are {names}." if names else ""
