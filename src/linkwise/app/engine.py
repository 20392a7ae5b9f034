"""Engine: clusters and questions, worked out in a thread of its own.

The page never waits for it. It is handed what is known (`Known`), and publishes what it found
(`Found`) when it is ready; answers that came in the meantime start the next round.
"""

from __future__ import annotations

import ctypes
import sys
import time
import traceback
from dataclasses import replace
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import issparse

from linkwise.active import Answer, ReviewSession, Session
from linkwise.active.committee import propose
from linkwise.active.review import EVERY as REVIEW_EVERY
from linkwise.app import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Floats, Ints, Singles
    from linkwise.active.answers import Given
    from linkwise.active.hypotheses import Beliefs
    from linkwise.active.review import Reviewed
    from linkwise.active.state import State
    from linkwise.app.conflicts import Evidence, Verdict
    from linkwise.app.events import Pair
    from linkwise.constraints.conflict import Suspect
    from linkwise.graph import Prepared

N_PROPOSALS = 40
QUICK = 20_000  # samples that the first, provisional clusters are found from
SUSPICIOUS = 0.5  # probability of being wrong above which an answer is worth a second look
WHY = "the answer tells likely clusterings apart"
WHY_REVIEWED = "two clusters that may be one"
CLOSE = 0.1  # probability from which on it is open whether two clusters are one
QUEUED = 500  # questions that are kept ready for a review
MOST_SHOWN = 60_000  # clusters: their numbers have 16 bits on the page and in the file
OFTEN = 2.0  # seconds; a clustering that took longer is repeated only when it is due
DEFAULT_CLUSTERS = 8  # of the provisional clusters, while the number is not known


class Known(NamedTuple):
    """What the answers so far amount to: consistent pairs."""

    upto: int = 0  # last event that is in it
    answers: tuple[Answer, ...] = ()  # that can hold together, in the order of their events
    n_clusters: int | None = None  # None if it is to be found


class Question(NamedTuple):
    """A pair worth asking about, and why."""

    pair: Pair
    why: str
    again: bool = False  # ask it whatever was answered before


class Found(NamedTuple):
    """A clustering, and what follows from it."""

    known: Known
    labels: Ints
    probability: Floats | None = None  # of each cluster, by sample
    questions: Sequence[Question] = ()
    still_to_change: float | None = None  # share of samples that further answers will move
    suspects: Sequence[tuple[Pair, float]] = ()
    method: str = ""
    is_full: bool = False  # it rests on all answers
    seconds: float | None = None  # that the last clustering took
    n_open: int | None = None  # pairs of clusters that may be one, if these are reviewed


class Solver(Protocol):
    """What clusters the samples and proposes questions."""

    def tell(self, known: Known) -> None:
        """Take the answers that count now."""

    @property
    def is_behind(self) -> bool:
        """Whether there are answers that the last clustering does not rest on."""

    def refit(self) -> None:
        """Cluster under all answers; another thread may call the others meanwhile."""

    def found(self, known: Known) -> Found:
        """Return the last clustering, and the next questions, in a moment."""


class First(Protocol):
    """What finds provisional clusters."""

    def __call__(self, data: Prepared, known: Known, /) -> Found:
        """Return clusters in a moment."""


class Publisher(Protocol):
    """Who is told what the engine found; called from its thread."""

    def found(self, result: Found) -> None:
        """Take a clustering."""

    def placed(self, points: Singles, name: str) -> None:
        """Take a map."""

    def failed(self, reason: str) -> None:
        """Take an error in words; empty when it is over."""

    def working(self, what: str) -> None:
        """Take what is being done; empty when nothing is."""


class PageSession(Session):
    """A session that tells all at once, from one and the same clustering."""

    def snapshot(self) -> tuple[Beliefs, State]:
        """Return what is believed now, and the state to propose questions from."""
        beliefs = self._beliefs_now()
        return beliefs, replace(self.state, believe=lambda: beliefs)


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
        self._seconds = 0.0  # of the last clustering
        self._lock = Lock()

    def tell(self, known: Known) -> None:
        """Bring the session to the answers that count now, whatever was undone or changed."""
        with self._lock:
            if self._session is None or self._asked_for != known.n_clusters:
                self._session = self._begun(known.n_clusters)
                self._asked_for = known.n_clusters
            replay(self._session, known.answers)

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
    def _is_full(self) -> bool:
        return self.session.n_clustered >= len(self.session.answers)

    def refit(self) -> None:
        """Cluster under all answers. Questions are answered by `found` in the meantime."""
        started = time.monotonic()
        self.session.refit()
        self._seconds = time.monotonic() - started

    def found(self, known: Known) -> Found:
        """Return the last clustering, and the next questions, in a moment."""
        session, is_full = self.session, self._is_full
        beliefs, state = session.snapshot()  # another thread may put a new clustering at any time
        return Found(
            known,
            beliefs.labels,
            beliefs.consensus,
            [Question((one.i, one.j), WHY) for one in propose(state, N_PROPOSALS)],
            beliefs.still_to_change,
            _suspicious(session.suspects),
            "Auto",
            is_full=is_full,
            seconds=self._seconds,
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
    shared = 0
    for before, now in zip(session.answers, wanted, strict=False):
        if before != now:
            break
        shared += 1
    for _ in range(len(session.answers) - shared):
        Session.undo(session)
    for answer in wanted[shared:]:
        Session.answer(session, answer.i, answer.j, _given(answer))


def _given(answer: Answer) -> Given:
    """Return an answer as it is given to a session: below belief 1 as a probability."""
    if answer.belief == 1 or answer.answer == "unknown":
        return answer.answer
    return (1 + answer.belief) / 2 if answer.answer == "same" else (1 - answer.belief) / 2


def _belief(verdict: Verdict) -> float:
    """Return a belief that is the same after it was given as a probability."""
    if verdict.relation == "unsure":
        return 1.0
    return max(1 + min(verdict.weight, 1.0) - 1, 2.0**-50)  # a number that 1 + it is exact for


def answers_of(evidence: Evidence) -> tuple[Answer, ...]:
    """Return what can hold together as answers of a session, in the order of their events."""
    found = [*evidence.accepted.values(), *evidence.unsure.values()]
    words = {"unsure": "unknown"}
    return tuple(
        Answer(*one.pair, words.get(one.relation, one.relation), belief=_belief(one))
        for one in sorted(found, key=lambda one: (one.seq, one.pair))
    )


def close_calls(probability: Floats, labels: Ints, n: int = N_PROPOSALS) -> list[Question]:
    """Return questions about samples between two clusters, against a clear case of one of them.

    Samples in turn from different pairs of clusters, so that questions differ.
    """
    k = probability.shape[1]
    if k < 2:
        return []
    order = np.argsort(-probability, axis=1)[:, :2]
    rows = np.arange(len(labels))
    margin = probability[rows, order[:, 0]] - probability[rows, order[:, 1]]
    clear = [int(np.argmax(np.where(labels == c, probability[:, c], -1.0))) for c in range(k)]
    border = order.min(axis=1) * k + order.max(axis=1)
    nearest = np.argsort(margin, kind="stable")[: 50 * n]
    rank: dict[int, int] = {}
    found = []
    for sample in nearest.tolist():
        c = int(border[sample])
        rank[c] = rank.get(c, -1) + 1
        found.append((rank[c], sample))
    questions = []
    for _, sample in sorted(found)[:n]:
        first, second = (int(c) for c in order[sample])
        other = clear[first] if clear[first] != sample else clear[second]
        if other != sample:
            pair = (min(sample, other), max(sample, other))
            questions.append(Question(pair, "a close call between two clusters"))
    return questions


def provisional(data: Prepared, known: Known, seed: int = 0) -> Found:
    """Return clusters in a moment, for the time until the full answer is there."""
    from sklearn.cluster import KMeans  # noqa: PLC0415  (the page is up before this is needed)

    points: Any = data.X
    if data.is_graph or issparse(points):
        points = layout.principal_axes(data).astype(np.float64)
    k = min(known.n_clusters or DEFAULT_CLUSTERS, len(points) - 1)
    some = np.random.RandomState(seed).permutation(len(points))[:QUICK]
    scaled = (points - points.mean(axis=0)) / np.maximum(points.std(axis=0), 1e-12)
    model = KMeans(max(k, 1), n_init=1, random_state=seed, max_iter=20).fit(scaled[some])
    far = model.transform(scaled) ** 2
    nearness = np.exp(-(far - far.min(axis=1, keepdims=True)) / max(float(np.median(far)), 1e-12))
    probability = nearness / nearness.sum(axis=1, keepdims=True)
    labels = far.argmin(axis=1).astype(np.intp)
    questions = close_calls(probability, labels)
    return Found(known, labels, probability, questions, method="k-means, for the moment")


def give_back_memory() -> None:
    """Return what a clustering has freed to the system: glibc keeps it otherwise, up to 100 MB."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)


class Engine:
    """Two threads until they are stopped: one prepares questions, the other clusters.

    Parameters
    ----------
    data : Prepared
        The samples.
    publisher : Publisher
        Who is told.
    solver : Solver
        What clusters.
    first : callable, default=None
        Returns clusters in a moment, for the time until the first clustering is there.
    """

    def __init__(
        self, data: Prepared, publisher: Publisher, solver: Solver, first: First | None = None
    ) -> None:
        self.data = data
        self._publisher, self._solver, self._first = publisher, solver, first
        self._changed = Condition()
        self._known = Known()
        self._is_new = True
        self._to_tell = self._to_refit = self._stopped = False
        self._threads = [
            Thread(target=work, name=f"linkwise {work.__name__}", daemon=True)
            for work in (self._prepare, self._cluster)
        ]

    def start(self, known: Known, *, is_new: bool) -> None:
        """Begin to work; without an earlier clustering, provisional clusters come first."""
        self._known, self._is_new = known, is_new
        for thread in self._threads:
            thread.start()

    def submit(self, known: Known) -> None:
        """Hand over what is known now; what was not begun yet is dropped."""
        with self._changed:
            self._known, self._to_tell = known, True
            self._changed.notify_all()

    def stop(self, timeout: float = 5.0) -> None:
        """Stop after the current step."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout)

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more will come."""
        return self._stopped

    def _wait(self, flag: str) -> bool:
        """Wait until there is something to do; False if there never will be."""
        with self._changed:
            while not getattr(self, flag) and not self._stopped:
                self._changed.wait()
            setattr(self, flag, False)
            return not self._stopped

    def _set(self, flag: str) -> None:
        with self._changed:
            setattr(self, flag, True)
            self._changed.notify_all()

    # One thread: the map, provisional clusters, then questions after every answer --------------

    def _prepare(self) -> None:
        self._guarded(lambda: self._publisher.placed(layout.principal_axes(self.data), "axes"))
        first, known = self._first, self._known
        if self._is_new and first is not None:
            self._guarded(lambda: self._publisher.found(first(self.data, known)))
        self._set("_to_refit")
        while self._wait("_to_tell"):
            self._guarded(self._tell)

    def _tell(self) -> None:
        known = self._known
        self._solver.tell(known)
        self._publisher.found(self._solver.found(known))
        if self._solver.is_behind:
            self._set("_to_refit")

    # The other: clustering, and the better map once ---------------------------------------------

    def _cluster(self) -> None:
        is_first = True
        while self._wait("_to_refit"):
            self._publisher.working("clustering")
            if is_first:
                self._guarded(lambda: self._solver.tell(self._known))
            if self._guarded(self._solver.refit):
                self._publisher.failed("")
                self._set("_to_tell")
            if is_first:
                is_first = False
                self._publisher.working("improving the map")
                self._guarded(self._better_map)
            give_back_memory()
            self._publisher.working("")

    def _better_map(self) -> None:
        points = layout.neighbor_layout(self.data, layout.principal_axes(self.data))
        if points is not None:
            self._publisher.placed(points, "graph")

    def _guarded(self, step: Callable[[], Any]) -> bool:
        """Run a step; an error is told, and the page goes on with what there is."""
        try:
            step()
        except Exception as error:
            traceback.print_exc()
            self._publisher.failed(f"{type(error).__name__}: {error}")
            return False
        return True
