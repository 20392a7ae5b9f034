"""Which constraints a draw holds: a function of seed, data, amount and repetition only."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from linkwise.constraints import Constraints
from linkwise.constraints.sampling import unrank_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike

    from linkwise._types import Ints, UInt32s

    Amount: TypeAlias = int | float | str
    # The kind of constraints: a name, or a sampler (y, amount, random_state) -> Constraints.
    Kind: TypeAlias = str | Callable[[Ints, int, np.random.RandomState], Constraints]

SHUFFLED = 2**22  # up to this many pairs a draw shuffles all of them
FIRST_BLOCK = 2**16  # above, pairs are drawn in blocks of this size, doubled each time


def draw_constraints(
    y: ArrayLike,
    amount: int,
    *,
    kind: Kind = "pairs",
    data: str = "data",
    repetition: int = 0,
    nested: bool = False,
    random_state: int = 0,
) -> Constraints:
    """Return the constraints that :func:`learning_curve` gives to every method in one draw.

    They depend on the arguments and on nothing else, so that the very sets of a run can be had
    again, for example to hand them to a program outside Python.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True classes, integers or strings.
    amount : int
        The number of pairs or labels.
    kind : {"pairs", "labels", "stratified", "per_class"} or callable, default="pairs"
        As in :func:`learning_curve`.
    data : str, default="data"
        Name of the data set: sets of different names are drawn independently.
    repetition : int, default=0
        Number of the draw.
    nested : bool, default=False
        Whether a larger amount holds what a smaller one of the same draw holds.
    random_state : int, default=0
        The seed of the run.

    Examples
    --------
    >>> y = [0, 0, 0, 1, 1, 1]
    >>> draw_constraints(y, 4, repetition=7)
    Constraints(n_samples=6, must_link=2, cannot_link=2)
    >>> small, large = (draw_constraints(y, m, kind="labels", nested=True) for m in (2, 5))
    >>> bool((small.constrained <= large.constrained).all())
    True
    """
    truth = encoded(y)
    _check_amount(truth, amount, kind=kind, data=data)
    key = ["constraints", random_state, data, repetition]
    rng = np.random.RandomState(_words(key if nested else [*key, amount]))
    if callable(kind):
        return _checked(kind(truth, amount, rng), truth.size)
    return KINDS[_checked_kind(kind)](truth, amount, rng)


def fit_seed(random_state: int, data: str, repetition: int) -> int:
    """Return the seed of all fits in one repetition.

    It is the same for every method and amount: along a curve only the constraints change.
    """
    return int(_words(["fit", random_state, data, repetition])[0] >> 1)


def _words(key: list[Any]) -> UInt32s:
    """Hash a key into a seed of eight words, the same on every machine."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return np.frombuffer(digest, dtype="<u4").astype(np.uint32)


# The samplers. Each takes the first `amount` items of a random order that does not depend on
# `amount`: with one seed for all amounts, the sets are nested.


def _pairs(y: Ints, amount: int, rng: np.random.RandomState) -> Constraints:
    pairs = unrank_pairs(_first_distinct(y.size * (y.size - 1) // 2, amount, rng))
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Constraints(y.size, pairs[same], pairs[~same])


def _first_distinct(population: int, size: int, rng: np.random.RandomState) -> Ints:
    """Return the first integers of a uniform order of those below `population`."""
    if population <= SHUFFLED:
        return rng.permutation(population)[:size].astype(np.intp)
    # In draws with replacement, the distinct values in order of first appearance are such an
    # order. The blocks do not depend on `size`.
    drawn = np.empty(0, dtype=np.int64)
    while True:
        first = np.sort(np.unique(drawn, return_index=True)[1])
        if first.size >= size:
            return drawn[first[:size]].astype(np.intp)
        block = max(FIRST_BLOCK, drawn.size)
        drawn = np.concatenate((drawn, rng.randint(0, population, size=block, dtype=np.int64)))


def _labels(y: Ints, amount: int, rng: np.random.RandomState) -> Constraints:
    return _revealed(y, rng.permutation(y.size)[:amount])


def _stratified(y: Ints, amount: int, rng: np.random.RandomState) -> Constraints:
    rank, size = _class_ranks(y, rng)
    # One sample of each class first, then by Webster's divisors: every beginning of this order
    # holds the classes in their proportions, rounded.
    turn = np.where(rank == 0, -1.0, (rank + 0.5) / size)
    return _revealed(y, np.lexsort((rng.permutation(y.size), turn))[:amount])


def _per_class(y: Ints, amount: int, rng: np.random.RandomState) -> Constraints:
    return _revealed(y, np.flatnonzero(_class_ranks(y, rng)[0] < amount))


def _class_ranks(y: Ints, rng: np.random.RandomState) -> tuple[Ints, Ints]:
    """Return each sample's place in a random order of its class, and the size of the class."""
    sizes = np.bincount(y)
    order = np.lexsort((rng.permutation(y.size), y))
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(y.size, dtype=np.intp)
    rank[order] = np.arange(y.size) - starts[y[order]]
    return rank, sizes[y]


def _revealed(y: Ints, known: Ints) -> Constraints:
    labels = np.full(y.size, -1, dtype=np.intp)
    labels[known] = y[known]
    return Constraints(y.size, labels=labels)


KINDS: dict[str, Callable[[Ints, int, np.random.RandomState], Constraints]] = {
    "pairs": _pairs,
    "labels": _labels,
    "stratified": _stratified,
    "per_class": _per_class,
}


# What is asked for ---------------------------------------------------------------------------


def counts(
    amounts: Iterable[Amount], y: Ints, *, kind: Kind, share_of: str, data: str
) -> list[int]:
    """Return the amounts as distinct numbers of pairs or labels, in increasing order."""
    if share_of not in {"samples", "pairs"}:
        raise ValueError(f"share_of must be 'samples' or 'pairs', got {share_of!r}.")
    _checked_kind(kind)
    n_samples = y.size
    whole = n_samples * (n_samples - 1) // 2 if share_of == "pairs" else n_samples
    if share_of == "pairs" and kind != "pairs":
        raise ValueError(f"share_of='pairs' is for kind='pairs'; kind is {_name(kind)}.")
    found = sorted({_count(asked, whole, kind) for asked in amounts})
    if not found:
        message = "amounts is empty. Give numbers of pairs or labels, for example [0, 10, '20%']."
        raise ValueError(message)
    _check_amount(y, found[-1], kind=kind, data=data)
    return found


def _count(asked: Any, whole: int, kind: Kind) -> int:
    if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool) and asked >= 0:
        return int(asked)
    share = _share(asked)
    if share is None:
        raise ValueError(
            f"The amount {asked!r} is neither a number of constraints (0, 1, 2, ...) nor a share: "
            "a float between 0 and 1, or a percentage such as '10%'."
        )
    if kind == "per_class":
        raise ValueError(
            f"With kind='per_class' the amount is a number of labels, but {asked!r} is a share. "
            "Take kind='stratified' for shares of every class."
        )
    # The small addition undoes what 0.1 * 3 lacks of 0.3; half a constraint is rounded up.
    return int(np.floor(share * whole + 0.5 + 1e-9))


def _share(asked: Any) -> float | None:
    if isinstance(asked, str) and asked.strip().endswith("%"):
        try:
            share = float(asked.strip()[:-1]) / 100
        except ValueError:
            return None
        return share if 0 <= share < np.inf else None
    if isinstance(asked, (float, np.floating)) and 0 <= asked < 1:
        return float(asked)
    return None


def encoded(y: ArrayLike) -> Ints:
    """Return the classes of `y`, numbered from 0."""
    array = np.asarray(y)
    if array.ndim != 1 or array.size < 2:
        raise ValueError(
            f"y must hold the class of each of at least two samples; its shape is {array.shape}."
        )
    if array.dtype.kind == "f" and np.isnan(array).any():
        message = f"y[{int(np.flatnonzero(np.isnan(array))[0])}] is nan. Leave such samples out."
        raise ValueError(message)
    codes: Ints = np.unique(array, return_inverse=True)[1]
    return codes


def _check_amount(y: Ints, amount: int, *, kind: Kind, data: str) -> None:
    if callable(kind):
        return  # the sampler knows
    limits = {
        "pairs": (y.size * (y.size - 1) // 2, "distinct pairs"),
        "per_class": (int(np.bincount(y).max()), "samples in the largest class"),
    }
    limit, what = limits.get(kind, (y.size, "samples"))
    if not 0 <= amount <= limit:
        message = f"The amount {amount} is impossible on {data!r}, which has {limit} {what}."
        raise ValueError(message)


def _checked_kind(kind: Kind) -> Any:
    if not callable(kind) and kind not in KINDS:
        message = f"kind must be one of {', '.join(map(repr, KINDS))} or a function, got {kind!r}."
        raise ValueError(message)
    return kind


def _checked(drawn: Any, n_samples: int) -> Constraints:
    if not isinstance(drawn, Constraints) or drawn.n_samples != n_samples:
        message = f"The function given as kind must return Constraints on {n_samples} samples."
        raise TypeError(message)
    return drawn


def _name(kind: Kind) -> str:
    return getattr(kind, "__name__", "a function") if callable(kind) else repr(kind)
