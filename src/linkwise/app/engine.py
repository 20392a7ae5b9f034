"""Engine: clusters and questions, worked out in threads of their own.

The page never waits for it. It is handed what is known (`Known`), and publishes what it found
(`Found`) when it is ready; answers that came in the meantime start the next round. The server runs
it in another process (`apart`), a test in its own.
"""

from __future__ import annotations

import ctypes
import sys
import traceback
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from linkwise.active.answers import Answer
from linkwise.app import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Floats, Int32s, Ints, Singles
    from linkwise.app.conflicts import Evidence, Verdict
    from linkwise.app.events import Pair
    from linkwise.graph import Prepared

N_PROPOSALS = 40
N_NEAREST = 4  # neighbours of a sample that the page can show


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
    questions: Sequence[Question] | None = ()  # None: those of before, until there are others
    still_to_change: float | None = None  # share of samples that further answers will move
    suspects: Sequence[tuple[Pair, float]] = ()
    method: str = ""
    is_full: bool = False  # it rests on all answers
    seconds: float | None = None  # that the last clustering took
    n_open: int | None = None  # pairs of clusters that may be one, if these are reviewed
    n_fitted: int = 0  # of `known`, the first that it rests on; later ones are only put on top


class Solver(Protocol):
    """What clusters the samples and proposes questions."""

    def tell(self, known: Known) -> None:
        """Take the answers that count now."""

    @property
    def is_behind(self) -> bool:
        """Whether there are answers that the last clustering does not rest on."""

    @property
    def is_quick(self) -> bool:
        """Whether the next clustering will be there in a moment."""

    @property
    def patience(self) -> float | None:
        """Seconds without news until a clustering that is not due is worth it; None for never."""

    def refit(self) -> None:
        """Cluster under all answers; another thread may call the others meanwhile."""

    def shown(self) -> Found | None:
        """Return the last clustering at once, without questions; None if answers came since."""

    def found(self, known: Known) -> Found:
        """Return the last clustering, and the next questions, in a moment."""


class First(Protocol):
    """What finds provisional clusters."""

    def __call__(self, data: Any, known: Known, /) -> Found:
        """Return clusters in a moment."""


class Publisher(Protocol):
    """Who is told what the engine found; called from its thread."""

    def found(self, result: Found) -> None:
        """Take a clustering."""

    def placed(self, points: Singles, name: str) -> None:
        """Take a map."""

    def linked(self, neighbors: Int32s) -> None:
        """Take the nearest samples of each sample, the nearest first; -1 where there is none."""

    def failed(self, reason: str) -> None:
        """Take an error in words; empty when it is over."""

    def working(self, what: str) -> None:
        """Take what is being done; empty when nothing is."""


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
    has_map : bool, default=False
        Whether the first map is there already.
    """

    def __init__(
        self,
        data: Prepared,
        publisher: Publisher,
        solver: Solver,
        first: First | None = None,
        *,
        has_map: bool = False,
    ) -> None:
        self.data = data
        self._publisher, self._solver, self._first = publisher, solver, first
        self._has_map = has_map
        self._changed = Condition()
        self._known = Known()
        self._is_new = True
        self._to_tell = self._to_refit = self._stopped = False
        self._patience: float | None = None  # seconds until the next clustering, if nobody answers
        self._is_idle = True  # a clustering would begin at once, and the last one did not fail
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

    def _wait(self, flag: str, seconds: float | None = None) -> bool:
        """Wait until there is something to do; False if there never will be, or not in time."""
        with self._changed:
            self._changed.wait_for(lambda: getattr(self, flag) or self._stopped, seconds)
            is_set = getattr(self, flag)
            setattr(self, flag, False)
            return bool(is_set) and not self._stopped

    def _set(self, flag: str) -> None:
        with self._changed:
            setattr(self, flag, True)
            self._changed.notify_all()

    # One thread: the map, provisional clusters, then questions after every answer --------------

    def _prepare(self) -> None:
        if not self._has_map:
            self._guarded(lambda: self._publisher.placed(layout.principal_axes(self.data), "axes"))
        first, known = self._first, self._known
        if self._is_new and first is not None:
            self._guarded(lambda: self._publisher.found(first(self.data, known)))
        self._set("_to_refit")
        while not self._stopped:
            if self._wait("_to_tell", self._patience):
                self._guarded(self._tell)
            else:  # nobody answers: what is shown shall rest on all answers
                self._patience = None
                self._set("_to_refit")

    def _tell(self) -> None:
        known, self._patience = self._known, None  # a clustering that fails is not repeated
        self._solver.tell(known)
        if not self._solver.is_behind:
            self._publisher.found(self._solver.found(known))
            self._patience = self._solver.patience
        elif self._is_idle and self._solver.is_quick:  # its questions are better, and there soon
            self._set("_to_refit")
        else:
            self._publisher.found(self._solver.found(known))
            self._set("_to_refit")

    # The other: clustering, and the better map once ---------------------------------------------

    def _cluster(self) -> None:
        is_first = True
        while self._wait("_to_refit"):
            was_idle, self._is_idle = self._is_idle, False
            self._publisher.working("clustering")
            # What follows from a first error would only hide it.
            is_ready = not is_first or self._guarded(lambda: self._solver.tell(self._known))
            is_clustered = is_ready and self._guarded(self._solver.refit)
            if is_clustered:
                self._is_idle = not is_first  # the better map comes first, and takes long
                self._publisher.failed("")
                if not is_first:  # there are questions of before
                    self._guarded(self._show)
                self._set("_to_tell")
            elif was_idle and not is_first:  # the newest answers have led to no questions yet
                self._guarded(lambda: self._publisher.found(self._solver.found(self._known)))
            if is_first and is_ready:
                is_first = False
                self._publisher.working("improving the map")
                self._guarded(self._better_map)
                self._is_idle = is_clustered
            give_back_memory()
            self._publisher.working("")

    def _show(self) -> None:
        shown = self._solver.shown()
        if shown is not None:
            self._publisher.found(shown)

    def _better_map(self) -> None:
        points = layout.neighbor_layout(self.data, layout.principal_axes(self.data))
        if points is not None:
            self._publisher.placed(points, "graph")
        if self.data.has_graph:
            self._publisher.linked(layout.nearest(self.data.W, N_NEAREST))

    def _guarded(self, step: Callable[[], Any]) -> bool:
        """Run a step; an error is told, and the page goes on with what there is."""
        try:
            step()
        except Exception as error:
            traceback.print_exc()
            self._publisher.failed(f"{type(error).__name__}: {error}")
            return False
        return True
