"""Errors and warnings of linkwise.

The tree::

    ValueError
     +-- ConflictError              certain constraints that cannot all hold
     +-- TooLargeError              a dense computation refused above its size limit
    UserWarning
     +-- ConvergenceWarning         an iterative solver stopped early (scikit-learn's class)
     +-- DisconnectedGraphWarning   a graph in several pieces
     +-- ConstraintsIgnoredWarning  constraints given to a method that uses none
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "ConflictError",
    "ConstraintsIgnoredWarning",
    "ConvergenceWarning",
    "DisconnectedGraphWarning",
    "TooLargeError",
]


class ConflictError(ValueError):
    """Certain constraints contradict each other, or need more clusters than asked for.

    Parameters
    ----------
    message : str
        What contradicts what, and what to do about it.
    witness : tuple of int
        The samples that prove it, in the order of the proof: the chain of must-links
        from one end of a cannot-link to the other, the odd ring of cannot-links, or
        the members of the clique.
    """

    def __init__(self, message: str, witness: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.witness = witness


class TooLargeError(ValueError):
    """A computation that is dense by nature was asked for on too many samples."""


class DisconnectedGraphWarning(UserWarning):
    """The graph has several connected components."""


class ConstraintsIgnoredWarning(UserWarning):
    """Constraints were given to a method that does not use any."""
