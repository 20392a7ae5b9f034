"""Belief propagation: what pairs say about samples when each pair may be wrong.

A sample has a distribution over clusters, the *opinion* of an expert. A pair says that its two
samples share a cluster, or that they do not, and is wrong with the probability `flip`. The
messages of the sum-product algorithm add up what all pairs say. On a tree the beliefs are the
exact marginals; elsewhere they are a good approximation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._jit import njit

if TYPE_CHECKING:
    from linkwise._types import Bools, Floats, Int32s


DAMPING = 0.3  # share of the old message that stays: loops would oscillate
MAX_SWEEPS = 12
TOL = 1e-3  # largest change of a message after which nothing more is sent


def flip_rate(belief: Floats, noise: float) -> Floats:
    """Return the probability that what is said is wrong.

    A share `belief` of what is said is said by someone who errs at the rate `noise`; the rest is
    the toss of a coin.
    """
    flip: Floats = belief * noise + (1 - belief) / 2
    return flip


class Pairs(NamedTuple):
    """Pairs of vertices, whether they are said to be together, and how firmly."""

    ends: Int32s  # (m, 2)
    together: Bools  # (m,)
    belief: Floats  # (m,), 1: as reliable as the others; near 0: says next to nothing

    def agreement(self, noise: float) -> Floats:
        """Return the probability that the samples of a pair *are* together, given what it says."""
        flip = flip_rate(self.belief, noise)
        agreement: Floats = np.where(self.together, 1 - flip, flip)
        return agreement


class Beliefs(NamedTuple):
    """The outcome of a propagation."""

    logits: Floats  # (n_vertices, k), opinions and all messages added up
    together: Floats  # (m,), probability that a pair is together, without what it says itself
    n_sweeps: int
    change: float  # of the last sweep: below the tolerance if it converged


def propagate(
    opinion: Floats,
    pairs: Pairs,
    noise: float,
    messages: Floats,
    *,
    max_sweeps: int = MAX_SWEEPS,
    tol: float = TOL,
    damping: float = DAMPING,
) -> Beliefs:
    """Send messages along all pairs until they settle.

    `opinion` are logarithms of probabilities up to a constant in each row, `noise` the probability
    that a pair is wrong. `messages`, of shape (m, 2, k), go into the first and the second vertex of
    each pair; they are changed in place, so that a later call goes on from here.

    Examples
    --------
    Of two samples that are apart, the first one knows where it is.

    >>> pairs = Pairs(np.array([[0, 1]], np.int32), np.array([False]), np.ones(1))
    >>> opinion = np.log([[0.9, 0.1], [0.5, 0.5]])
    >>> found = propagate(opinion, pairs, 0.0, np.zeros((1, 2, 2)), max_sweeps=100, tol=1e-9)
    >>> np.exp(found.logits[1] - np.logaddexp.reduce(found.logits[1])).round(3).tolist()
    [0.1, 0.9]
    """
    total, together = np.empty_like(opinion, order="C"), np.empty(pairs.belief.size)
    scratch = np.empty((3, opinion.shape[1]))
    n_sweeps, change = _propagate(
        np.ascontiguousarray(opinion),
        (pairs.ends, pairs.agreement(noise)),
        (messages, total, together, scratch),
        (max_sweeps, tol, damping),
    )
    return Beliefs(total, together, n_sweeps, change)


@njit(cache=True, nogil=True)
def _propagate(opinion, said, arrays, limits):  # type: ignore[no-untyped-def]
    ends, agreement = said
    messages, total, together, scratch = arrays
    max_sweeps, tol, damping = limits
    n_sweeps, change = 0, 0.0
    _sum_messages(total, opinion, ends, messages)
    for _ in range(max_sweeps):
        change = 0.0
        for e in range(together.size):
            # Both cavities first: the new messages of a pair do not know of each other.
            _cavities(total, ends, messages, e, scratch)
            for side in range(2):
                new = _message(messages, e, side, agreement[e], damping, scratch)
                change = max(change, new)
        _sum_messages(total, opinion, ends, messages)
        n_sweeps += 1
        if change < tol:
            break
    for e in range(together.size):
        _cavities(total, ends, messages, e, scratch)
        together[e] = 0.0
        for c in range(total.shape[1]):
            together[e] += scratch[0, c] * scratch[1, c]
    return n_sweeps, change


@njit(cache=True, nogil=True)
def _sum_messages(total, opinion, ends, messages):  # type: ignore[no-untyped-def]
    for vertex in range(total.shape[0]):
        for c in range(total.shape[1]):
            total[vertex, c] = opinion[vertex, c]
    for e in range(ends.shape[0]):
        for side in range(2):
            vertex = ends[e, side]
            for c in range(total.shape[1]):
                total[vertex, c] += messages[e, side, c]


@njit(cache=True, nogil=True)
def _cavities(total, ends, messages, e, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write the beliefs of the vertices of a pair, each without the message of the pair."""
    for side in range(2):
        vertex = ends[e, side]
        largest = -np.inf
        for c in range(total.shape[1]):
            out[side, c] = total[vertex, c] - messages[e, side, c]
            largest = max(largest, out[side, c])
        add = 0.0
        for c in range(total.shape[1]):
            out[side, c] = np.exp(out[side, c] - largest)
            add += out[side, c]
        for c in range(total.shape[1]):
            out[side, c] /= add


@njit(cache=True, nogil=True)
def _message(  # type: ignore[no-untyped-def]  # noqa: PLR0917
    messages, e, side, agreement, damping, scratch
):
    """Renew a message given the cavity belief of its sender; return how much it changed."""
    largest = -np.inf
    for c in range(messages.shape[2]):
        p = scratch[1 - side, c]
        scratch[2, c] = np.log(max(agreement * p + (1 - agreement) * (1 - p), 1e-300))
        largest = max(largest, scratch[2, c])
    change = 0.0
    for c in range(messages.shape[2]):
        old = messages[e, side, c]
        renewed = damping * old + (1 - damping) * (scratch[2, c] - largest)
        change = max(change, abs(renewed - old))
        messages[e, side, c] = renewed
    return change
