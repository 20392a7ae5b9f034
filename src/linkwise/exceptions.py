"""Errors and warnings of linkwise.

The tree::

    ValueError
     +-- ConflictError              certain constraints that cannot all hold
     +-- TooLargeError              a dense computation above its size limit
    UserWarning
     +-- ConvergenceWarning         an iterative solver stopped early (scikit-learn's class)
     +-- DisconnectedGraphWarning   a graph of several connected components
     +-- ConstraintsIgnoredWarning  constraints given to a method that uses none
     +-- LowRecallWarning           an approximate search that misses many neighbours
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning

    from linkwise._types import Ints

__all__ = [
    "ConflictError",
    "ConstraintsIgnoredWarning",
    "ConvergenceWarning",
    "DisconnectedGraphWarning",
    "LowRecallWarning",
    "TooLargeError",
]


def __getattr__(name: str) -> Any:
    """Import scikit-learn's warning when it is asked for: that takes a second."""
    if name == "ConvergenceWarning":
        return import_module("sklearn.exceptions").ConvergenceWarning
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class ConflictError(ValueError):
    """Certain constraints contradict each other, or need more clusters than asked for.

    Parameters
    ----------
    message : str
        What contradicts what, and what to do about it.
    witness : tuple of int
        The samples that prove it, in the order of the proof: the chain of must-links
        from one end of a cannot-link to the other, the odd ring of cannot-links, the
        members of the clique, the hubs of a wheel and then its ring, or a sample of each
        group of a minimal set. Of an undecided question, the ends of the cannot-links that
        the best attempt leaves.
    kind : str or None
        ``"contradiction"``, ``"odd ring"``, ``"clique"``, ``"wheel"``, ``"minimal set"``,
        ``"labels"`` (more labels than clusters), ``"too few groups"`` or ``"undecided"``.
    must_link, cannot_link : tuple of int
        Positions, in the input, of all must-links and cannot-links of the proof. Of an
        undecided question, the cannot-links that the best attempt leaves.
    labelled : tuple of int
        The samples whose labels take part in the proof.
    bracket : tuple of int or None
        The number of clusters that is proved to be needed, and one with which all pairs are
        known to hold (None: not known). None if no number suffices.
    attempt : ndarray of shape (n_samples,) or None
        Of an undecided question, the clusters of the best attempt.
    """

    def __init__(
        self,
        message: str,
        witness: tuple[int, ...] = (),
        *,
        kind: str | None = None,
        must_link: tuple[int, ...] = (),
        cannot_link: tuple[int, ...] = (),
        labelled: tuple[int, ...] = (),
        bracket: tuple[int, int | None] | None = None,
        attempt: Ints | None = None,
    ) -> None:
        super().__init__(message)
        self.witness = witness
        self.kind = kind
        self.must_link = must_link
        self.cannot_link = cannot_link
        self.labelled = labelled
        self.bracket = bracket
        self.attempt = attempt


class TooLargeError(ValueError):
    """A computation that is dense by nature was asked for on too many samples."""


class DisconnectedGraphWarning(UserWarning):
    """The graph has several connected components."""


class ConstraintsIgnoredWarning(UserWarning):
    """Constraints were given to a method that does not use any."""


class LowRecallWarning(UserWarning):
    """An approximate search missed more than one in twenty of the nearest neighbours."""
