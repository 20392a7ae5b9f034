"""ReviewSession: the review queue of `Linkage`, asked pair by pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from linkwise.active.answers import Answer, as_pair, constraints_of, graded
from linkwise.active.journal import FORMAT, fingerprint
from linkwise.active.kept import KeepsAnswers
from linkwise.constraints import Constraints
from linkwise.graph import Prepared
from linkwise.registry import METHODS

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from linkwise._types import Ints
    from linkwise.active.answers import Given
    from linkwise.active.strategies import Pair
    from linkwise.linkage.review import ReviewQueue

EVERY = 20  # answers after which samples are clustered again


class Reviewed(NamedTuple):
    """Many small clusters under some answers, and the pairs to review."""

    answers: tuple[Answer, ...]
    model: Any
    queue: ReviewQueue


class ReviewSession(KeepsAnswers):
    """Questions about pairs of thousands of small clusters, whose number need not be known.

    Questions are the review queue of :class:`~linkwise.Linkage`: at most one for two clusters, by
    ``p (1 - p) sqrt(mA mB)``. Samples are clustered again after every twenty answers. An answer may
    be wrong and may contradict others; the error rate is estimated.

    Parameters
    ----------
    data : array-like, sparse matrix or Prepared
        The samples.
    constraints : Constraints, default=None
        What is known before the first question.
    random_state : int, default=0
        Seed of the clustering.
    path : str or path-like, default=None
        A file that keeps every answer. If it exists the session goes on where it was left.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.RandomState(0)
    >>> y = np.repeat(np.arange(40), 3)
    >>> X = rng.normal(size=(40, 6))[y] + 0.3 * rng.normal(size=(120, 6))
    >>> session = ReviewSession(X)
    >>> for _ in range(5):
    ...     i, j = session.next()
    ...     session.answer(i, j, bool(y[i] == y[j]))
    >>> len(session.answers), session.constraints.n_pairs
    (5, 5)
    """

    stability = float("nan")  # not looked at: each clustering takes seconds

    def __init__(
        self,
        data: Any,
        *,
        constraints: Constraints | None = None,
        random_state: int = 0,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._data = Prepared.of(data)
        self._prior = Constraints(self._data.n_samples) if constraints is None else constraints
        self._seed = random_state
        self._fitted: Reviewed | None = None
        super().__init__(path)
        self._take_up()

    @property
    def constraints(self) -> Constraints:
        """The answers, and what was known before them."""
        return constraints_of(self.answers, self._prior, noisy=False)

    @property
    def labels(self) -> Ints:
        """The clusters, as of the last multiple of twenty answers."""
        labels: Ints = self._now().model.labels_
        return labels

    def next(self) -> Pair | None:
        """Return the pair to ask about, the same until something is answered; None at the end."""
        asked = {answer[:2] for answer in self.answers}
        for i, j in self._now().queue.pairs:
            pair = (int(min(i, j)), int(max(i, j)))
            if pair not in asked:
                return pair
        return None

    def answer(self, i: int, j: int, answer: Given) -> None:
        """Record the answer about a pair: "same", "different", "unknown", or a probability."""
        record = Answer(*as_pair(i, j, self._data.n_samples), *graded(answer))
        self._commit(record._asdict(), [*self.answers, record])

    def _now(self) -> Reviewed:
        """Return the clusters after the last multiple of twenty answers, and what to review."""
        used = tuple(self.answers[: len(self.answers) // EVERY * EVERY])
        if self._fitted is None or self._fitted.answers != used:
            self._fitted = self.after(used)
        return self._fitted

    def after(self, answers: Sequence[Answer]) -> Reviewed:
        """Return the clusters under some answers, and what to review then."""
        known = constraints_of(answers, self._prior, noisy=False)
        model: Any = METHODS["linkage"](random_state=self._seed)
        model.fit(self._data, constraints=known)
        return Reviewed(tuple(answers), model, model.review(known))

    def _header(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "data": fingerprint(self._data.X),
            "n_samples": self._data.n_samples,
            "n_clusters": 0,  # found
            "strategy": "review",
            "method": "linkage",
            "noisy": True,
            "seed": self._seed,
        }
