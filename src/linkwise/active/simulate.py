"""Simulated sessions: a program answers instead of a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from linkwise.active.oracles import Run
from linkwise.constraints.validation import as_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from linkwise._types import AnyArray, Bools, Floats, Ints
    from linkwise.active.answers import Answer
    from linkwise.active.oracles import BatchOracle, Oracle
    from linkwise.active.session import Session


class TruthOracle:
    """Answers by true labels; about samples whose label is missing it knows nothing.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels, numbers or texts; -1, None and NaN are missing ones.

    Examples
    --------
    >>> oracle = TruthOracle([0, 0, 1, -1])
    >>> oracle(0, 1), oracle(0, 2), oracle(0, 3)
    ('same', 'different', 'unknown')
    """

    def __init__(self, y: ArrayLike) -> None:
        # As objects, since numpy would turn a NaN among texts into the text "nan".
        self.y = np.asarray(y) if hasattr(y, "dtype") else np.asarray(y, dtype=object)
        if self.y.ndim != 1:
            raise ValueError(f"y must hold one label per sample; its shape is {self.y.shape}.")
        self._known = _known(self.y)

    def __call__(self, i: int, j: int) -> str:
        """Answer about two samples."""
        if not (0 <= i < self.y.size and 0 <= j < self.y.size):
            raise IndexError(
                f"Samples {i} and {j} are asked about, but there are true labels of "
                f"{self.y.size} samples only."
            )
        if not (self._known[i] and self._known[j]):
            return "unknown"
        return "same" if self.y[i] == self.y[j] else "different"


def _known(y: AnyArray) -> Bools:
    """Which labels are not missing."""
    if y.dtype.kind in "US":
        return np.ones(y.size, dtype=bool)
    if y.dtype.kind != "O":
        known: Bools = (y == y) & (y != -1)  # noqa: PLR0124  (NaN differs from itself)
        return known
    return np.array([not _is_missing(label) for label in y], dtype=bool)


def _is_missing(label: Any) -> bool:
    if label is None:
        return True
    try:
        return bool(label != label or label == -1)  # noqa: PLR0124  (NaN differs from itself)
    except TypeError:  # the missing value of pandas is neither equal to itself nor different
        return True


class NoisyOracle(TruthOracle):
    """Answers by true labels, but sometimes wrongly, and sometimes not at all.

    The answer about a pair is always the same, whenever it is asked.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels, as of :class:`TruthOracle`.
    flip : float, default=0.1
        The share of wrong answers among those given.
    unknown : float, default=0
        The share of pairs answered with "unknown".
    random_state : int, RandomState instance or None, default=None
        Seed.
    """

    def __init__(
        self,
        y: ArrayLike,
        flip: float = 0.1,
        unknown: float = 0.0,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(y)
        self.flip = flip
        self.unknown = unknown
        self._seed = int(check_random_state(random_state).randint(2**31 - 1))

    def __call__(self, i: int, j: int) -> str:
        """Answer about two samples."""
        truth = super().__call__(i, j)
        rng = np.random.RandomState([self._seed, min(i, j), max(i, j)])
        is_unknown, is_wrong = rng.random_sample(2) < (self.unknown, self.flip)
        if is_unknown or truth == "unknown":
            return "unknown"
        return truth if not is_wrong else {"same": "different", "different": "same"}[truth]


@dataclass(frozen=True, eq=False)
class Curve:
    """What a simulated session went through.

    Parameters
    ----------
    n_questions : ndarray of shape (t,)
        After how many questions each clustering was computed; the first one is before any.
    labels : ndarray of shape (t, n_samples)
        The clusterings.
    answers : list of Answer
        All questions and answers.
    """

    n_questions: Ints
    labels: Ints
    answers: list[Answer]

    def ari(self, y: ArrayLike) -> Floats:
        """Return the adjusted Rand index of each clustering against true labels.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True classes.
        """
        return np.array([adjusted_rand_score(y, labels) for labels in self.labels])

    def first(self, y: ArrayLike, ari: float) -> int | None:
        """Return the number of questions at which the index reaches `ari` for the first time."""
        reached = np.flatnonzero(self.ari(y) >= ari)
        return int(self.n_questions[reached[0]]) if reached.size else None


def simulate(
    session: Session,
    oracle: Oracle | BatchOracle,
    budget: int,
    *,
    every: int = 1,
    items: Any = None,
    batch_size: int | None = None,
) -> Curve:
    """Let an oracle answer the questions of a session, and cluster in between.

    Parameters
    ----------
    session : Session
        It goes on from where it is.
    oracle : callable
        ``oracle(i, j)`` returns "same", "different" or "unknown" (or True, False, None), or a
        probability: true labels, a person, or any program, as of :func:`ask_oracle`.
    budget : int
        The number of questions; fewer are asked if nothing is left to ask.
    every : int, default=1
        Cluster after every so many questions, and at the end.
    items : sequence or data frame, default=None
        What the oracle gets instead of row numbers, as in :func:`ask_oracle`.
    batch_size : int, default=None
        If given, the oracle gets up to so many pairs at once, as in :func:`ask_oracle`.

    Returns
    -------
    Curve

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linkwise.active import Session, TruthOracle, simulate
    >>> X, y = load_iris(return_X_y=True)
    >>> curve = simulate(Session(X, 3, random_state=0), TruthOracle(y), budget=20, every=10)
    >>> curve.n_questions.tolist()
    [0, 10, 20]
    >>> before, _, after = curve.ari(y)
    >>> bool(before < after)
    True
    """
    budget = as_count(budget, "budget", minimum=0)
    every = as_count(every, "every")
    if isinstance(oracle, TruthOracle) and oracle.y.size != session.n_samples:
        raise ValueError(
            f"The oracle has true labels of {oracle.y.size} samples, the session is about "
            f"{session.n_samples}."
        )
    run = Run(session, oracle, items=items, batch_size=batch_size)
    asked, labels, n_questions = [0], [session.labels], 0
    for n_questions, _ in enumerate(run.answers(budget), 1):
        if n_questions % every == 0:
            asked.append(n_questions)
            labels.append(session.labels)
    if asked[-1] < n_questions:
        asked.append(n_questions)
        labels.append(session.labels)
    return Curve(np.array(asked, dtype=np.intp), np.array(labels), list(session.answers))
