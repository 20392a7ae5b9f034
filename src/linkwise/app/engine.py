"""Engine: clusters and questions, worked out in a thread of its own.

The page never waits for it. It is handed what is known (`Known`), and publishes what it found
(`Found`) when it is ready; answers that came in the meantime start the next round.
"""

from __future__ import annotations

import traceback
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.sparse import issparse

from linkwise.app import layout
from linkwise.auto import Auto
from linkwise.constraints import Constraints
from linkwise.exceptions import ConflictError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Floats, Ints, Singles
    from linkwise.app.events import Pair
    from linkwise.graph import Prepared

N_PROPOSALS = 40
QUICK = 20_000  # samples that the first, provisional clusters are found from
SUSPICIOUS = 0.5  # probability of being wrong above which an answer is worth a second look
DEFAULT_CLUSTERS = 8  # of the provisional clusters, while the number is not known


class Known(NamedTuple):
    """What the answers so far amount to: consistent pairs."""

    upto: int = 0  # last event that is in it
    same: tuple[Pair, ...] = ()
    different: tuple[Pair, ...] = ()
    unsure: tuple[Pair, ...] = ()
    n_clusters: int | None = None  # None if it is to be found


class Question(NamedTuple):
    """A pair worth asking about, and why."""

    pair: Pair
    why: str


class Found(NamedTuple):
    """A clustering, and what follows from it."""

    known: Known
    labels: Ints
    probability: Floats | None = None  # of each cluster, by sample
    questions: Sequence[Question] = ()
    still_to_change: float | None = None  # share of samples that further answers will move
    suspects: Sequence[tuple[Pair, float]] = ()
    method: str = ""
    notes: Sequence[str] = ()


class Solver(Protocol):
    """What clusters the samples and proposes questions."""

    def solve(self, known: Known) -> Found:
        """Return the clustering under what is known."""


class Publisher(Protocol):
    """Who is told what the engine found; called from its thread."""

    def found(self, result: Found) -> None:
        """Take a clustering."""

    def placed(self, points: Singles, name: str) -> None:
        """Take a map."""

    def failed(self, reason: str) -> None:
        """Take an error in words."""

    def working(self, what: str) -> None:
        """Take what is being done; empty when nothing is."""


class AutoSolver:
    """Clusters by `Auto`; asks about samples between two clusters.

    Parameters
    ----------
    data : Prepared
        The samples.
    seed : int
        Seed of the clustering.
    """

    def __init__(self, data: Prepared, seed: int = 0) -> None:
        self.data = data
        self.seed = seed

    def solve(self, known: Known) -> Found:
        """Fit `Auto` to the answers, which it satisfies where it can."""
        constraints = Constraints(self.data.n_samples, known.same, known.different)
        n_clusters = "auto" if known.n_clusters is None else known.n_clusters
        notes: list[str] = []
        try:
            model = self._fitted(constraints, n_clusters, hard=True)
        except ConflictError as error:  # so many clusters cannot satisfy all answers
            notes.append(str(error))
            model = self._fitted(constraints, n_clusters, hard=False)
        probability = model.result_.probability
        assert probability is not None
        suspects = [
            ((int(one.samples[0]), int(one.samples[1])), float(one.probability))
            for one in model.suspects_
            if len(one.samples) == 2 and (one.probability or 0) > SUSPICIOUS
        ]
        return Found(
            known,
            model.labels_,
            probability,
            close_calls(probability, model.labels_),
            suspects=suspects,
            method="Auto",
            notes=notes,
        )

    def _fitted(self, constraints: Constraints, n_clusters: Any, *, hard: bool) -> Auto:
        model = Auto(n_clusters, hard=hard, random_state=self.seed)
        return model.fit(self.data, constraints=constraints)


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
            questions.append(Question(pair, f"a close call between two clusters, {margin[sample]:.0%} apart"))
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


class Engine:
    """Works in the background until it is stopped.

    Parameters
    ----------
    data : Prepared
        The samples.
    publisher : Publisher
        Who is told.
    solver : Solver, default=None
        What clusters; `AutoSolver` by default.
    """

    def __init__(self, data: Prepared, publisher: Publisher, solver: Solver | None = None) -> None:
        self.data = data
        self._publisher = publisher
        self._solver = AutoSolver(data) if solver is None else solver
        self._changed = Condition()
        self._known: Known | None = None
        self._stopped = False
        self._thread = Thread(target=self._work, name="linkwise engine", daemon=True)

    def start(self, known: Known, *, is_new: bool) -> None:
        """Begin to work; without an earlier clustering, provisional clusters come first."""
        self._known = known
        self._is_new = is_new
        self._thread.start()

    def submit(self, known: Known) -> None:
        """Hand over what is known now; what was not begun yet is dropped."""
        with self._changed:
            self._known = known
            self._changed.notify()

    def stop(self) -> None:
        """Stop after the current step."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing more will come."""
        return self._stopped

    def _next(self) -> Known | None:
        with self._changed:
            while self._known is None and not self._stopped:
                self._changed.wait()
            known, self._known = self._known, None
            return None if self._stopped else known

    def _work(self) -> None:
        self._guarded(lambda: self._publisher.placed(layout.principal_axes(self.data), "axes"))
        assert self._known is not None
        if self._is_new:
            first = self._known
            self._guarded(lambda: self._publisher.found(provisional(self.data, first)))
        n_rounds = 0
        while (known := self._next()) is not None:
            self._publisher.working("clustering")
            found = self._guarded(lambda known=known: self._solve(known))
            if n_rounds == 0 and found is not None:
                self._publisher.working("improving the map")
                self._guarded(lambda k=int(found.labels.max()) + 1: self._better_map(k))
            self._publisher.working("")
            n_rounds += 1

    def _solve(self, known: Known) -> Found:
        found = self._solver.solve(known)
        self._publisher.found(found)
        return found

    def _better_map(self, n_clusters: int) -> None:
        points = layout.spectral(self.data, n_clusters)
        if points is not None:
            self._publisher.placed(points, "graph")

    def _guarded(self, step: Callable[[], Any]) -> Any:
        """Run a step; an error is told, and the page goes on with what there is."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001  (whatever it is, the page must go on)
            traceback.print_exc()
            self._publisher.failed(f"{type(error).__name__}: {error}")
            return None
