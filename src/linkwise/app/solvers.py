"""What clusters the samples and proposes questions: `Session` and `ReviewSession` as solvers.

Importing this imports everything that clusters, which takes seconds and 200 MB; so the server does
it in a process of its own (`worker`).
"""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from linkwise.active import ReviewSession, Session
from linkwise.active.committee import propose
from linkwise.active.review import EVERY as REVIEW_EVERY
from linkwise.app.engine import N_PROPOSALS, Found, Known, Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise.active.answers import Answer, Given
    from linkwise.active.hypotheses import Beliefs
    from linkwise.active.review import Reviewed
    from linkwise.active.state import State
    from linkwise.app.engine import Solver
    from linkwise.app.events import Pair
    from linkwise.constraints.conflict import Suspect
    from linkwise.graph import Prepared

SUSPICIOUS = 0.5  # probability of being wrong above which an answer is worth a second look
WHY = "the answer tells likely clusterings apart"
WHY_REVIEWED = "two clusters that may be one"
CLOSE = 0.1  # probability from which on it is open whether two clusters are one
QUEUED = 500  # questions that are kept ready for a review
MOST_SHOWN = 60_000  # clusters: their numbers have 16 bits on the page and in the file
SOON = 0.5  # seconds; so long, nobody misses questions in which the last answer counts
OFTEN = 2.0  # seconds; a clustering that took longer is repeated only when it is due


def solver_for(data: Prepared, *, by_size: bool) -> Solver:
    """Return what clusters: a review if there are many small clusters."""
    return ReviewSolver(data) if by_size else SessionSolver(data)


class PageSession(Session):
    """A session that tells all at once, from one and the same clustering."""

    def snapshot(self) -> tuple[Beliefs, State]:
        """Return what is believed now, and the state to propose questions from."""
        beliefs = self._beliefs_now()
        return beliefs, replace(self.state, believe=lambda: beliefs)

    def cluster(self, answers: Sequence[Answer]) -> bool:
        """Cluster under some answers; False if that was done before."""
        is_new = self._fits.known(answers) is None
        self._fits.after(answers)
        return is_new

    def clustering(self) -> Beliefs | None:
        """Return what the clustering under all answers says, at once; None if there is none."""
        fit = self._fits.known(self.answers)
        return None if fit is None else fit.shown


class SessionSolver:
    """Clusters and asks as :class:`linkwise.active.Session` does.

    Answers are taken for ones that may be wrong: none is refused, and a wrong one does little
    harm. `settle.settled` puts the answered samples where the answers say.

    Parameters
    ----------
    data : Prepared
        The samples.
    seed : int
        Seed of the clustering.
    """

    def __init__(self, data: Prepared, seed: int = 0) -> None:
        self.data, self.seed = data, seed
        self._session: PageSession | None = None
        self._asked_for: int | None = None
        self._known = Known()  # what the session was told
        self._seconds = 0.0  # of the last clustering
        self._lock = Lock()

    def tell(self, known: Known) -> None:
        """Bring the session to the answers that count now, whatever was undone or changed."""
        with self._lock:
            if self._session is None or self._asked_for != known.n_clusters:
                self._session = self._begun(known.n_clusters)
                self._asked_for = known.n_clusters
            replay(self._session, known.answers)
            self._known = known

    def _begun(self, n_clusters: int | None) -> PageSession:
        k: int | str = min(n_clusters or 0, self.data.n_samples) or "auto"
        return PageSession(self.data, k, noisy=True, random_state=self.seed)

    @property
    def session(self) -> PageSession:
        """The session; `tell` begins it."""
        assert self._session is not None
        return self._session

    @property
    def is_behind(self) -> bool:
        """Whether to cluster again: after every answer if that is quick, else now and then."""
        return self.session.refit_is_due or (self._seconds < OFTEN and not self._is_full)

    @property
    def is_quick(self) -> bool:
        """Whether the next clustering will be there in a moment, if it takes no longer."""
        return 0 < self._seconds < SOON

    @property
    def patience(self) -> float | None:
        """As many seconds as a clustering takes; None if the last one rests on all answers."""
        return None if self._is_full else self._seconds

    @property
    def _is_full(self) -> bool:
        return self.session.n_clustered >= len(self.session.answers)

    def refit(self) -> None:
        """Cluster under all answers. Questions are answered by `found` in the meantime."""
        started = time.monotonic()
        with self._lock:  # else these are some of the answers, while others are taken back
            session, answers = self.session, self.session.answers
        if session.cluster(answers):  # else it was there: how long one takes is not known anew
            self._seconds = time.monotonic() - started

    def shown(self) -> Found | None:
        """Return the clustering under all answers at once; None if others came since."""
        with self._lock:
            known, beliefs = self._known, self.session.clustering()
        return None if beliefs is None else self._found(known, beliefs, None, is_full=True)

    def found(self, known: Known) -> Found:
        """Return the last clustering, and the next questions, in a moment."""
        session, is_full = self.session, self._is_full
        beliefs, state = session.snapshot()  # another thread may put a new clustering at any time
        questions = [Question((one.i, one.j), WHY) for one in propose(state, N_PROPOSALS)]
        return self._found(known, beliefs, questions, is_full=is_full)

    def _found(
        self, known: Known, beliefs: Beliefs, questions: list[Question] | None, *, is_full: bool
    ) -> Found:
        return Found(
            known,
            beliefs.labels,
            beliefs.consensus,
            questions,
            beliefs.still_to_change,
            _suspicious(self.session.suspects),
            "Auto",
            is_full=is_full,
            seconds=self._seconds,
            n_fitted=beliefs.n_fitted,
        )


class ReviewSolver:
    """Clusters and asks as :class:`linkwise.active.ReviewSession` does: many small clusters.

    Parameters
    ----------
    data : Prepared
        The samples.
    seed : int
        Seed of the clustering.
    """

    def __init__(self, data: Prepared, seed: int = 0) -> None:
        self.data = data
        self._session = ReviewSession(data, random_state=seed)
        self._answers: tuple[Answer, ...] = ()
        self._fitted: Reviewed | None = None
        self._seconds = 0.0

    def tell(self, known: Known) -> None:
        """Take the answers that count now."""
        self._answers = known.answers

    @property
    def is_behind(self) -> bool:
        """Whether to cluster again: after every answer if that is quick, else after twenty."""
        used = () if self._fitted is None else self._fitted.answers
        if used == self._answers:
            return False
        is_due = len(self._answers) - len(used) >= REVIEW_EVERY
        return is_due or self._seconds < OFTEN or used != self._answers[: len(used)]

    @property
    def is_quick(self) -> bool:
        """Never: without a clustering there are no questions."""
        return False

    @property
    def patience(self) -> float | None:
        """As many seconds as a clustering takes; None if the last one rests on all answers."""
        is_full = self._fitted is not None and self._fitted.answers == self._answers
        return None if is_full else self._seconds

    def shown(self) -> None:
        """Nothing: questions come with the clustering."""

    def refit(self) -> None:
        """Cluster under all answers."""
        started, answers = time.monotonic(), self._answers
        found = self._session.after(answers)
        if found.model.n_clusters_ > MOST_SHOWN:
            raise ValueError(
                f"there are {found.model.n_clusters_:,} clusters, and the page shows at most "
                f"{MOST_SHOWN:,}. `linkwise ask -m linkage` asks the same questions"
            )
        self._fitted = found
        self._seconds = time.monotonic() - started

    def found(self, known: Known) -> Found:
        """Return the last clustering, and the pairs that are worth reviewing."""
        assert self._fitted is not None
        answers, model, queue = self._fitted
        asked = {one[:2] for one in known.answers}
        pairs = [(min(pair), max(pair)) for pair in queue.pairs[:QUEUED].tolist()]
        is_open = (queue.probability > CLOSE) & (queue.probability < 1 - CLOSE)
        return Found(
            known,
            model.labels_,
            questions=[Question(pair, WHY_REVIEWED) for pair in pairs if pair not in asked],
            suspects=_suspicious(model.suspects_),
            method="Linkage",
            is_full=answers == known.answers,
            seconds=self._seconds,
            n_open=int(is_open.sum()),
            n_fitted=_n_shared(answers, known.answers),
        )


def _suspicious(suspects: Sequence[Suspect]) -> list[tuple[Pair, float]]:
    """Return the pairs whose answers are more likely wrong than right."""
    return [
        ((int(one.samples[0]), int(one.samples[1])), one.probability)
        for one in suspects
        if len(one.samples) == 2 and one.probability is not None
        if one.probability > SUSPICIOUS
    ]


def replay(session: Session, wanted: Sequence[Answer]) -> None:
    """Bring a session to other answers: take back what differs, then answer."""
    shared = _n_shared(session.answers, wanted)
    for _ in range(len(session.answers) - shared):
        Session.undo(session)
    for answer in wanted[shared:]:
        Session.answer(session, answer.i, answer.j, _given(answer))


def _n_shared(before: Sequence[Answer], now: Sequence[Answer]) -> int:
    """Return how many answers are the same, from the first one on."""
    for shared, (one, other) in enumerate(zip(before, now, strict=False)):
        if one != other:
            return shared
    return min(len(before), len(now))


def _given(answer: Answer) -> Given:
    """Return an answer as it is given to a session: below belief 1 as a probability."""
    if answer.belief == 1 or answer.answer == "unknown":
        return answer.answer
    return (1 + answer.belief) / 2 if answer.answer == "same" else (1 - answer.belief) / 2
