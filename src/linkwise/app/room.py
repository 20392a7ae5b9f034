"""Room: one project with its answers, clusters and questions, for all who answer at a time."""

from __future__ import annotations

import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise.app.apart import Apart
from linkwise.app.conflicts import Evidence, verdicts
from linkwise.app.engine import Engine, Known, Question, answers_of
from linkwise.app.events import ABOUT_PAIRS, Event
from linkwise.app.feed import Feed
from linkwise.app.first import provisional
from linkwise.app.ledger import Ledger
from linkwise.app.matching import adjusted_rand, in_use, matched, moved_share
from linkwise.app.samples import prepared
from linkwise.app.settle import settled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from linkwise._types import AnyArray, Floats, Int32s, Ints, Singles
    from linkwise.active.answers import Answer
    from linkwise.app.apart import Process
    from linkwise.app.engine import Found, Solver
    from linkwise.app.events import Pair
    from linkwise.app.items import Items
    from linkwise.app.project import Project
    from linkwise.app.samples import Samples
    from linkwise.graph import Prepared

LEASE = 120.0  # seconds for which a question is shown to one person only
LATER = 10  # answers until a question that was put off comes back
WINDOW = 15  # answers that the sentence about stopping looks back
CHECK_EVERY = 12  # questions, one of which repeats what is known, if that is wanted
KEEP_EVERY = 5  # answers after which a clustering is kept, even if it lacks the last of them
KEPT_RUNS = 60  # clusterings that are compared with the last one
RANDOM = "a random pair"  # why it is asked
DRAWS = 400  # random pairs tried before the open ones are searched for


class Lease(NamedTuple):
    """A question that is shown to somebody."""

    question: Question
    until: float


@dataclass
class Clustering:
    """What is on the map."""

    rev: int = 0
    base: Ints | None = None  # as the engine found it
    labels: Ints | None = None  # with the answers since then
    probability: Floats | None = None
    clusters: Ints | None = None  # cluster of each column of `probability`
    known: Known = field(default_factory=Known)
    still_to_change: float | None = None
    suspects: Sequence[tuple[Pair, float]] = ()
    method: str = ""
    seconds: float | None = None
    is_full: bool = False  # it rests on all answers that it knew
    n_open: int | None = None  # pairs of clusters that may be one
    n_fitted: int = 0  # answers that it rests on

    @property
    def confidence(self) -> Floats | None:
        """How probable the cluster of each sample is."""
        if self.probability is None or self.labels is None or self.clusters is None:
            return None
        column = np.full(int(max(self.labels.max(), self.clusters.max())) + 1, -1, dtype=np.intp)
        column[self.clusters] = np.arange(self.clusters.size)
        place = column[self.labels]
        sure = self.probability[np.arange(place.size), np.maximum(place, 0)]
        return np.where(place >= 0, sure, 0.0)


class Room:
    """One project, opened.

    Parameters
    ----------
    project : Project
        The file of events.
    items : Items
        The samples as they are shown.
    data : Samples or Prepared
        The samples as they are clustered.
    n_clusters : int, default=None
        The number of clusters; found if it is None.
    truth : ndarray of shape (n_samples,), default=None
        True classes, -1 where unknown, to show the gain.
    solver : Solver, default=None
        What clusters the samples.
    by_size : bool, default=False
        Whether there are many small clusters, which are shown by size, and reviewed.
    process : Process, default=None
        Another process, in which clusters are found; by default in threads of this one.
    """

    def __init__(
        self,
        project: Project,
        items: Items,
        data: Samples | Prepared,
        *,
        n_clusters: int | None = None,
        truth: Ints | None = None,
        solver: Solver | None = None,
        by_size: bool = False,
        process: Process | None = None,
    ) -> None:
        self.project, self.items, self.data, self.truth = project, items, data, truth
        self.n_samples, self.by_size = len(items), by_size
        self.lock = RLock()
        self.feed = Feed()
        self.evidence = Evidence()
        self._said: set[Pair] = set()  # pairs with an answer, "not sure" too
        self.clustering = Clustering()
        self.points: Singles | None = None
        self.neighbors: Int32s | None = None  # the nearest samples of each sample
        self.map_name, self.map_rev = "", 0
        self.opened = secrets.token_hex(8)  # revisions are compared within it only
        self.doing = ""
        self.error = ""
        self._errors: dict[str, str] = {}  # by source
        self._given_clusters = n_clusters
        self._pool: list[Question] = []
        self._shown: Found | None = None  # the last clustering, if it came without questions
        self._wanted: dict[str, deque[Question]] = {}  # asked for, by session
        self._leases: dict[str, Lease] = {}
        self._history: list[tuple[int, AnyArray]] = []  # answers given, and labels then
        self.runs: list[dict[str, Any]] = []  # figures of all clusterings
        self._seen = project.changed()
        self._n_taken = len(project.ledger.events)  # that are in `evidence`
        self._upto = 0  # last event that the engine was told of
        self._rng = np.random.RandomState(0)
        self._engine = self._hired(solver) if process is None else self._apart(process)
        self._resume()

    def _apart(self, process: Process) -> Apart:
        return Apart(self.data, self, process, by_size=self.by_size)

    def _hired(self, solver: Solver | None) -> Engine:
        """Return an engine in this process."""
        data = prepared(self.data)
        if solver is None:
            from linkwise.app.solvers import solver_for  # noqa: PLC0415  (seconds)

            solver = solver_for(data, by_size=self.by_size)
        return Engine(data, self, solver, None if self.by_size else provisional)

    def _resume(self) -> None:
        """Go on where the project was left."""
        self._weigh()
        runs = [
            run
            for run in self.project.runs()
            if run.stats.get("counts", run.stats["still"] is not None)
        ]
        self.runs = [run.stats for run in runs]
        self._history = [
            (int(run.stats["given"]), run.labels.astype(np.uint16))
            for run in runs
            if run.labels is not None
        ]
        if (last := self.project.last_run()) is not None:
            answers = self._answers_at(last.upto)
            self.clustering = Clustering(
                rev=last.rev,
                base=last.labels,
                labels=last.labels,
                known=Known(answers=answers, n_clusters=self.n_clusters),
                n_fitted=last.stats.get("fitted", 0),
            )
            self._settle()

    def _answers_at(self, upto: int) -> tuple[Answer, ...]:
        """Return what the answers amounted to after an event."""
        before = Ledger.of(one for one in self.project.ledger.events if one.seq <= upto)
        return answers_of(Evidence.of(verdicts(before.facts.answers)))

    def open(self) -> None:
        """Begin to cluster in the background."""
        known = self.known()
        self._upto = known.upto
        self._engine.start(known, is_new=self.clustering.labels is None)

    def close(self) -> None:
        """Stop, and close the file."""
        self._engine.stop()
        self.feed.close()
        self.project.close()

    # What is known -------------------------------------------------------------------------

    @property
    def n_clusters(self) -> int | None:
        """The number of clusters that is asked for, or None."""
        chosen = self.project.ledger.facts.n_clusters
        return self._given_clusters if chosen is None else chosen or None

    def known(self) -> Known:
        """Return what the answers amount to, for the engine."""
        return Known(self.project.ledger.last, answers_of(self.evidence), self.n_clusters)

    def _weigh(self, added: Sequence[Event] = ()) -> None:
        """Work out which answers can hold together; one more new pair is simply added."""
        answers = self.project.ledger.facts.answers
        if len(added) == 1 and added[0].kind == "answer" and added[0].weight == 1:
            event = added[0]
            others = sum(pair == event.pair for pair, _ in answers)
            is_lightest = min((one.weight for one in answers.values()), default=1.0) >= 1
            if others == 1 and is_lightest and event.pair not in self._said:
                self._said.add(event.pair)
                self.evidence.add(*verdicts({(event.pair, event.owner): event}))
                return
        self._said = {pair for pair, _ in answers}
        self.evidence = Evidence.of(verdicts(answers))

    def _settle(self) -> None:
        """Put the answered samples where the answers say, at once."""
        now = self.clustering
        if now.base is not None:
            now.labels = self.settled(now, self.evidence)

    def settled(self, now: Clustering, evidence: Evidence) -> Ints:
        """Return clusters in which answered samples are where some answers say."""
        assert now.base is not None
        known = None if now.probability is None else (now.probability, now.clusters)
        return settled(now.base, evidence, known, may_add=self.by_size)

    # Acting --------------------------------------------------------------------------------

    def act(self, events: Sequence[Event]) -> bool:
        """Write an action, and update everything that follows; False if it was known already."""
        with self.lock:
            written = self.project.append(events)
            self._catch_up()  # others may have written just before
            return bool(written)

    def _catch_up(self) -> None:
        """Update everything that follows from events that are new, whoever wrote them."""
        events = self.project.ledger.events[self._n_taken :]
        if events:
            self._n_taken += len(events)
            self._update(events)

    def _update(self, events: Sequence[Event]) -> None:
        self._close_questions({event.pair for event in events if event.b is not None})
        self._weigh(events if len(events) == 1 else ())
        about_samples = {*ABOUT_PAIRS, "undo", "redo", "clusters"}
        if any(event.kind in about_samples for event in events):
            self._settle()
            self._submit()
        self.clustering.rev += 1
        self.feed.publish("rev", {"rev": self.clustering.rev, "by": events[-1].who})

    def _submit(self) -> None:
        known = self.known()
        self._upto = known.upto
        self._engine.submit(known)

    def _close_questions(self, answered: set[Pair]) -> None:
        """Ask nobody about these pairs any more."""
        for session, lease in list(self._leases.items()):
            if lease.question.pair in answered:
                del self._leases[session]
        for session, wanted in self._wanted.items():
            self._wanted[session] = deque(one for one in wanted if one.pair not in answered)

    def poll(self) -> None:
        """Look whether another process, such as ``linkwise ask``, has added events."""
        with self.lock:
            now = self.project.changed()
            if now == self._seen:
                return
            self.project.refresh()
            self._catch_up()
            self._seen = now  # only now: what could not be read is tried again

    def turn(self, kind: str, who: str, uuid: str) -> list[Event]:
        """Undo or redo the last action of a person; returns its events, none if there is none."""
        with self.lock:
            ledger = self.project.ledger
            target = ledger.undoable(who) if kind == "undo" else ledger.redoable(who)
            if target is None:
                return []
            done = ledger.action(target)
            self.act([Event(kind, uuid, who, target=target)])
            if kind == "redo":  # the answers are there again: nobody is asked
                self._close_questions({event.pair for event in done if event.b is not None})
            return done

    # Questions -----------------------------------------------------------------------------

    def question(
        self, session: str, who: str, *, prefer: Pair | None = None, check: bool = False
    ) -> Question | None:
        """Return the question of a session, which is its own for two minutes; None at the end."""
        with self.lock:
            now = time.monotonic()
            lease = self._leases.get(session)
            if lease is not None and self._may_ask(lease.question, session):
                self._leases[session] = lease._replace(until=now + LEASE)
                return lease.question
            found = next(self._candidates(session, who, prefer=prefer, check=check), None)
            if self._is_too_early(found):
                return None
            self._leases.pop(session, None)
            if found is not None:
                self._leases[session] = Lease(found, now + LEASE)
                if found in self._wanted.get(session, ()):
                    self._wanted[session].remove(found)
            return found

    def _is_too_early(self, found: Question | None) -> bool:
        """Whether a better question than a random one comes in a moment."""
        is_any = found is not None and found.why == RANDOM
        return is_any and self.clustering.labels is None and not self.error

    def ahead(self, session: str, who: str, n: int) -> list[Question]:
        """Return questions that may come next, for when the server cannot be reached."""
        with self.lock:
            found: dict[Pair, Question] = {}
            for question in self._candidates(session, who):
                found.setdefault(question.pair, question)
                if len(found) >= n:
                    break
            return list(found.values())

    def rivals(self, sample: int) -> list[int]:
        """Return samples that a sample is to be compared with."""
        return [a + b - sample for (a, b), *_ in self._pool if sample in (a, b)]

    def release(self, session: str) -> None:
        """Give a question back."""
        with self.lock:
            self._leases.pop(session, None)

    def prefer(self, session: str, pair: Pair, why: str = "the question you took back") -> None:
        """Ask about a pair next in a session, answered or not."""
        with self.lock:
            self._wanted.setdefault(session, deque()).appendleft(Question(pair, why, again=True))
            self._leases.pop(session, None)

    def want(self, session: str, questions: Sequence[Question]) -> None:
        """Ask these next in a session."""
        with self.lock:
            again = [one._replace(again=True) for one in questions]
            self._wanted.setdefault(session, deque()).extend(again)
            self._leases.pop(session, None)

    def _candidates(
        self, session: str, who: str, *, prefer: Pair | None = None, check: bool = False
    ) -> Iterator[Question]:
        """Yield what may be asked, the most wanted first."""
        facts = self.project.ledger.facts
        if prefer is not None:
            mine = next((one for one in self._pool if one.pair == prefer), None)
            yield from self._open([mine or Question(prefer, "where you left off")], session)
        yield from self._open(tuple(self._wanted.get(session, ())), session)
        if check and facts.n_given % CHECK_EVERY == CHECK_EVERY - 1:
            yield from self._open(self._repeated(who), session)
        due = [pair for pair, when in facts.later.items() if facts.n_given - when >= LATER]
        yield from self._open([Question(pair, "you put this off") for pair in due], session)
        yield from self._open(self._pool, session)
        if not self.by_size:  # of many small clusters, hardly any two samples are the same
            yield from self._open(self._any_open(), session)
        waiting = [Question(pair, "you put this off") for pair in facts.later if pair not in due]
        yield from self._open(waiting, session, later=True)

    def _open(self, questions: Any, session: str, *, later: bool = False) -> Iterator[Question]:
        return (one for one in questions if self._may_ask(one, session, later=later))

    def _may_ask(self, question: Question, session: str, *, later: bool = False) -> bool:
        """Whether a pair is open, not put off, not shown to others, and not locked."""
        facts, (a, b) = self.project.ledger.facts, question.pair
        if {a, b} & facts.flagged or not self._is_free(question.pair, session):
            return False
        if question.again:
            return True
        if not self.evidence.is_open(a, b) or question.pair in self._said:
            return False
        if not later and facts.n_given - facts.later.get(question.pair, -LATER) < LATER:
            return False
        return not self._is_locked(a, b)

    def _is_free(self, pair: Pair, session: str) -> bool:
        now = time.monotonic()
        return not any(
            lease.question.pair == pair and lease.until > now
            for other, lease in self._leases.items()
            if other != session
        )

    def _is_locked(self, a: int, b: int) -> bool:
        labels, locks = self.clustering.labels, self.project.ledger.facts.locks
        if labels is None or not locks:
            return False
        one, other = int(labels[a]), int(labels[b])
        if one == other:
            return locks.get(one) in {"pure", "complete"}
        return "complete" in {locks.get(one), locks.get(other)}

    def _repeated(self, who: str) -> Iterator[Question]:
        """Yield a pair that this person answered, to see how often the two answers differ."""
        answers, accepted = self.project.ledger.facts.answers, self.evidence.accepted
        pairs = [pair for pair, owner in answers if owner == who and pair in accepted]
        if len(pairs) >= 3:
            pair = pairs[int(self._rng.randint(len(pairs)))]
            word = "same" if self.evidence.relation(*pair) > 0 else "different"
            yield Question(pair, f"check {word}", again=True)

    def _any_open(self) -> Iterator[Question]:
        """Yield open pairs at random, then all that are left, one sample for each group."""
        for a, b in self._rng.randint(self.n_samples, size=(DRAWS, 2)).tolist():
            if a != b:
                yield Question((min(a, b), max(a, b)), RANDOM)
        some = np.flatnonzero(
            np.fromiter((self.evidence.group(k) == k for k in range(self.n_samples)), bool)
        ).tolist()
        for place, a in enumerate(some):
            for b in some[place + 1 :]:
                yield Question((a, b), RANDOM)

    # What the engine tells -----------------------------------------------------------------

    def found(self, result: Found) -> None:
        """Take a clustering: numbers of clusters stay, newer answers are put on top."""
        before = self.clustering.base  # only whoever finds clusters changes it
        labels = matched(result.labels, before)
        codes = in_use(result.labels)
        number = np.zeros(int(codes.max()) + 1, dtype=np.intp)
        number[result.labels] = labels
        probability = None if result.probability is None else result.probability[:, codes]
        is_same = before is not None and np.array_equal(labels, before)
        with self.lock:  # an answer waits no longer than for the rest
            if self._engine.is_stopped:
                return
            if self._is_shown(result) or self._is_older(result):  # all but its questions
                self._pool = list(result.questions or ())
                self.feed.publish("progress", {"doing": self.doing})
                return
            is_new = result.known.upto > self.clustering.known.upto or not is_same
            if (result.is_full and is_new) or self._is_time_to_keep():
                self._keep(result, labels)
            new = Clustering(
                self.clustering.rev + 1, labels, labels, probability, number[codes], result.known,
                result.still_to_change, result.suspects, result.method, result.seconds,
                result.is_full, result.n_open, result.n_fitted,
            )  # fmt: skip
            new.labels = self.settled(new, self.evidence)
            self.clustering = new  # only now: nobody sees it without the newest answers
            if result.questions is not None:
                self._pool = list(result.questions)
            self.feed.publish("rev", {"rev": self.clustering.rev, "by": ""})

    def _is_shown(self, result: Found) -> bool:
        """Whether a clustering is on the map, as it is, since a moment ago."""
        now, shown = self.clustering, self._shown
        self._shown = result if result.questions is None else None
        return (
            shown is not None
            and result.is_full
            and result.known.upto == shown.known.upto == now.known.upto
            and np.array_equal(result.labels, shown.labels)
        )

    def _is_older(self, result: Found) -> bool:
        """Whether a clustering rests on fewer of the answers that count than the shown one does.

        After an answer was taken back, the last one that does not rest on it may be old. What is
        shown stays then, with the answers that count, until there is one that rests on as many of
        them. Answers that were taken back keep nothing on the map.
        """
        now = self.clustering
        if result.is_full or result.known.n_clusters != now.known.n_clusters:
            return False
        counting = {one[:3] for one in answers_of(self.evidence)}
        return _n_heard(result, counting) < _n_heard(now, counting)

    def _is_time_to_keep(self) -> bool:
        before = self.runs[-1]["given"] if self.runs else -KEEP_EVERY
        return bool(self.project.ledger.facts.n_given - before >= KEEP_EVERY)

    def _keep(self, result: Found, labels: Ints) -> None:
        """Keep a clustering in the file, and its figures unless it is only for the moment."""
        before = self._history[-1][1] if self._history else None
        stats: dict[str, Any] = {
            "moved": round(moved_share(labels, before), 5),
            "given": self.project.ledger.facts.n_given,
            "clusters": int(in_use(labels).size),
            "still": result.still_to_change,
            "method": result.method,
            "counts": result.is_full or result.still_to_change is not None,
            "fitted": result.n_fitted,
        }
        if self.truth is not None:
            stats["ari"] = self.agreement_with_truth(labels)
        self.project.keep_run(labels, result.known.upto, stats)
        if not stats["counts"]:
            return  # what replaces it is no effect of answers
        self.runs.append(stats)
        self._history.append((int(stats["given"]), labels.astype(np.uint16)))
        del self._history[:-KEPT_RUNS]

    def agreement_with_truth(self, labels: Ints) -> float | None:
        """Return the adjusted Rand index between clusters and true classes; it needs two rows."""
        if self.truth is None or self.n_truth < 2:
            return None
        is_known = self.truth >= 0
        return round(float(adjusted_rand(self.truth[is_known], labels[is_known])), 4)

    def placed(self, points: Singles, name: str) -> None:
        """Take a map."""
        with self.lock:
            self.points, self.map_name = points, name
            self.map_rev += 1
            self.feed.publish("map", {"rev": self.map_rev, "name": name})

    def linked(self, neighbors: Int32s) -> None:
        """Take the nearest samples of each sample."""
        self.neighbors = neighbors

    def failed(self, reason: str, source: str = "clustering") -> None:
        """Take an error in words; an empty one ends the one before of the same source."""
        with self.lock:
            self._errors[source] = reason
            told = " ".join(filter(None, self._errors.values()))
            if told != self.error:
                self.error = told
                self.feed.publish("failure", {"reason": told})

    def working(self, what: str) -> None:
        """Take what the engine does now."""
        self.doing = what
        self.feed.publish("progress", {"doing": what})

    # Figures -------------------------------------------------------------------------------

    @property
    def is_full(self) -> bool:
        """Whether what is shown rests on all answers; names and locks change no clusters."""
        return self.clustering.is_full and self.clustering.known.upto == self._upto

    @property
    def is_settled(self) -> bool:
        """Whether all pairs follow from the answers."""
        return self.evidence.n_settled == self.n_samples * (self.n_samples - 1) // 2

    @property
    def still_to_change(self) -> float | None:
        """The share of samples that further answers will move; None while it is not known."""
        still = self.clustering.still_to_change
        return still if still is None or not self.is_settled else 0.0

    @property
    def n_truth(self) -> int:
        """The number of samples whose true class is known."""
        return 0 if self.truth is None else int((self.truth >= 0).sum())

    def moved_lately(self) -> float | None:
        """Return the share of samples that the last 15 answers moved; None before there are 15."""
        given, labels = self.project.ledger.facts.n_given, self.clustering.labels
        before = [old for n, old in self._history if n <= given - WINDOW]
        if labels is None or not before:
            return None
        return moved_share(labels, before[-1])


def _n_heard(one: Clustering | Found, counting: set[tuple[Any, ...]]) -> int:
    """Return how many of the answers that a clustering rests on are among those that count."""
    rests_on = one.known.answers[: one.n_fitted]
    return one.n_fitted - sum(answer[:3] not in counting for answer in rests_on)
