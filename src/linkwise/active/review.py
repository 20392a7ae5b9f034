"""ReviewSession: the review queue of `Linkage`, asked pair by pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwise.active.answers import Answer, as_pair, constraints_of, graded
from linkwise.active.journal import FORMAT, Journal, Mark, check_settings, fingerprint
from linkwise.active.session import Kept, answers_in
from linkwise.constraints import Constraints
from linkwise.graph import Prepared
from linkwise.registry import METHODS

if TYPE_CHECKING:
    import os

    from linkwise._types import Ints
    from linkwise.active.answers import Given
    from linkwise.active.strategies import Pair

EVERY = 20  # answers after which samples are clustered again


class ReviewSession:
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
        n = self._data.n_samples
        self._prior = Constraints(n) if constraints is None else constraints
        self._seed = random_state
        self._kept = Kept([], Mark())
        self._fitted: tuple[list[Answer], Any] | None = None
        self._journal = None if path is None else Journal(Path(path))
        if self._journal is None:
            return
        if self._journal.header is None:
            self._kept = Kept([], self._journal.begin(self._header()))
        else:
            check_settings(self._journal.path, self._journal.header, self._header())
            self._kept = Kept(answers_in(self._journal, n), self._journal.mark)

    @property
    def answers(self) -> list[Answer]:
        """All answers, the last one last."""
        return self._kept.answers

    @property
    def constraints(self) -> Constraints:
        """The answers, and what was known before them."""
        return constraints_of(self.answers, self._prior, noisy=False)

    @property
    def labels(self) -> Ints:
        """The clusters, as of the last multiple of twenty answers."""
        labels: Ints = self._model()[0].labels_
        return labels

    def next(self) -> Pair | None:
        """Return the pair to ask about, the same until something is answered; None at the end."""
        asked = {answer[:2] for answer in self.answers}
        for i, j in self._model()[1].pairs:
            pair = (int(min(i, j)), int(max(i, j)))
            if pair not in asked:
                return pair
        return None

    def answer(self, i: int, j: int, answer: Given) -> None:
        """Record the answer about a pair: "same", "different", "unknown", or a probability."""
        record = Answer(*as_pair(i, j, self._data.n_samples), *graded(answer))
        self._commit(record._asdict(), [*self.answers, record])

    def undo(self) -> Answer:
        """Take back the last answer and return it."""
        if not self.answers:
            raise ValueError("There is no answer to take back.")
        last = self.answers[-1]
        self._commit({"undo": True}, self.answers[:-1])
        return last

    def _commit(self, record: dict[str, Any], answers: list[Answer]) -> None:
        """Write a record, and make `answers` the answers; or neither, if something gets between."""
        if self._journal is None:
            self._kept = Kept(answers, Mark())
            return
        try:
            # One assignment: an interrupt comes before it or after it.
            self._kept = Kept(answers, self._journal.append(record, self._kept.mark))
        except BaseException:
            self._journal.roll_back(self._kept.mark)
            raise

    def _model(self) -> Any:
        """Return the model after the last multiple of twenty answers, and its review queue."""
        used = self.answers[: len(self.answers) // EVERY * EVERY]
        if self._fitted is None or self._fitted[0] != used:
            known = constraints_of(used, self._prior, noisy=False)
            model: Any = METHODS["linkage"](random_state=self._seed)
            model.fit(self._data, constraints=known)
            self._fitted = used, (model, model.review(known))
        return self._fitted[1]

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
