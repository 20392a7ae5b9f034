"""Session: ask, answer, cluster again; nothing that was answered is lost."""

from __future__ import annotations

import warnings
from inspect import signature
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_array, check_random_state

from linkwise.active.entail import refuse
from linkwise.active.journal import FORMAT, Journal, fingerprint, write
from linkwise.active.spectral import boundary, xu
from linkwise.active.state import State
from linkwise.active.strategies import explore, random, uncertainty
from linkwise.constraints import Constraints, PairTable
from linkwise.constraints.table import pair_keys
from linkwise.constraints.validation import as_count
from linkwise.exceptions import ConflictError, DisconnectedGraphWarning
from linkwise.graph import Affinity, check_affinity
from linkwise.registry import METHODS

if TYPE_CHECKING:
    import os

    from linkwise._types import Ints
    from linkwise.active.strategies import Strategy
    from linkwise.methods import ConstrainedClusterer

    Pair: TypeAlias = tuple[int, int]

__all__ = ["STRATEGIES", "Answer", "Session"]

STRATEGIES: dict[str, Strategy] = {
    "random": random,
    "xu": xu,
    "explore": explore,
    "uncertainty": uncertainty,
    "boundary": boundary,
}

ANSWERS = {True: "same", False: "different", None: "unknown"}
NOISY_BELIEF = 0.9  # in an answer that may be wrong
WINDOW = 5  # answers that `stability` looks back


class Answer(NamedTuple):
    """What was said about a pair of samples."""

    i: int
    j: int
    answer: str  # "same", "different" or "unknown"


class Session:
    """Questions about pairs of samples, their answers, and the clustering under them.

    Parameters
    ----------
    data : array-like or sparse matrix of shape (n_samples, n_features)
        The samples; or, with ``affinity="precomputed"``, the graph of shape
        (n_samples, n_samples). Strategies that look at distances take those of the embedding
        where data are sparse or only the graph is given.
    n_clusters : int
        The number of clusters, none of which is empty.
    strategy : {"random", "xu", "explore", "uncertainty", "boundary"} or callable, \
default="uncertainty"
        How questions are chosen; see ``linkwise.active.STRATEGIES``.
    method : str or estimator, default="e2cp"
        How samples are clustered: a key of ``linkwise.METHODS`` or an estimator. A method given
        by its key satisfies every answer where it can (``hard=True``), unless `noisy`.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built, once; None means ``Affinity()``.
    constraints : Constraints, default=None
        What is known before the first question. Pairs of belief below 1 are evidence: they
        exclude no answer, and an answer about such a pair takes its place.
    noisy : bool, default=False
        Whether answers may be wrong. They are then kept as evidence, of belief 0.9: no answer is
        refused, and nothing is taken to follow from them.
    random_state : int, RandomState instance or None, default=None
        Seed of the questions and of the clustering.
    path : str or path-like, default=None
        A file that keeps every answer as soon as it is given. If it exists the session goes on
        where it was left. One session at a time writes to it.

    Attributes
    ----------
    W : csr_array or ndarray of shape (n_samples, n_samples)
        The graph.
    answers : list of Answer
        All answers, the last one last.

    Notes
    -----
    A question is never asked twice, nor is one whose answer follows from the others, the number of
    clusters included. Questions depend on the data, the settings and the answers so far only: the
    same answers give the same questions, in a resumed session too.

    Of several answers about one pair the last one counts.

    Examples
    --------
    Four corners, opposite ones belong together: two questions are enough.

    >>> from linkwise import Affinity
    >>> from linkwise.active import Session
    >>> from linkwise.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> paper = Affinity(None, scale="xu")
    >>> session = Session(X, 2, strategy="xu", method="csc", affinity=paper, random_state=0)
    >>> while (pair := session.next()) is not None:
    ...     session.answer(*pair, "same" if y[pair[0]] == y[pair[1]] else "different")
    >>> len(session.answers), bool((session.labels == y).all())
    (2, True)
    """

    def __init__(  # noqa: PLR0913  (settings, each with a default)
        self,
        data: Any,
        n_clusters: int,
        *,
        strategy: str | Strategy = "uncertainty",
        method: str | ConstrainedClusterer = "e2cp",
        affinity: Any = None,
        constraints: Constraints | None = None,
        noisy: bool = False,
        random_state: int | np.random.RandomState | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self.n_clusters = as_count(n_clusters, "n_clusters", minimum=2)
        self.noisy = noisy
        self._strategy, self._strategy_name = _strategy(strategy)
        self._data, self.W = _data_and_graph(data, affinity)
        self.n_samples: int = self._data.shape[0]
        if self.n_clusters > self.n_samples:
            message = f"n_clusters={n_clusters} is more than the {self.n_samples} samples."
            raise ValueError(message)
        self._start = _checked(constraints, self.n_samples, self.n_clusters)
        self._is_graph = isinstance(affinity, str)
        self._method_name = method if isinstance(method, str) else type(method).__name__
        self.answers: list[Answer] = []
        self._shared: dict[str, Any] = {}
        self._journal = None if path is None else Journal(Path(path))
        header = None if self._journal is None else self._journal.header
        self._seed = _seed(random_state, header)
        self._model = _model(method, self, affinity)
        # What was worked out for these answers; and labels by the number of answers.
        self._known: dict[str, Any] = {}
        self._fits: dict[int, Ints] = {}
        if self._journal is not None and header is not None:
            self._resume(self._journal, header)
        elif self._journal is not None:
            self._journal.begin(self._header())

    @classmethod
    def load(cls, path: str | os.PathLike[str], data: Any, **settings: Any) -> Session:
        """Return the session that a file keeps; new answers go to the same file.

        Parameters
        ----------
        path : str or path-like
            A file made by `save`, or the `path` of a session.
        data : array-like or sparse matrix
            The same data or graph.
        **settings
            What the file does not keep and was not left at its default: `affinity`,
            `constraints`, an estimator as `method`, a callable as `strategy`.
        """
        header = Journal(Path(path)).header
        if header is None:
            message = f"{path} holds no session. Begin one with Session(..., path={str(path)!r})."
            raise FileNotFoundError(message)
        names = ("n_clusters", "strategy", "method", "noisy")
        return cls(data, **{**{name: header[name] for name in names}, **settings}, path=path)

    def __repr__(self) -> str:
        return (
            f"Session(n_samples={self.n_samples}, n_clusters={self.n_clusters}, "
            f"strategy={self._strategy_name!r}, method={self._method_name!r}, "
            f"answers={len(self.answers)})"
        )

    # Asking --------------------------------------------------------------------------------

    def next(self) -> Pair | None:
        """Return the pair to ask about, the same until something is answered; None at the end."""
        if "next" not in self._known:
            found = self.batch(1)
            self._known["next"] = found[0] if found else None
        pair: Pair | None = self._known["next"]
        return pair

    def batch(self, n_queries: int) -> list[Pair]:
        """Return several pairs to ask about at once, at most `n_queries`."""
        # One stream per number of answers: resuming and undoing lead to the same questions.
        rng = np.random.RandomState([self._seed, len(self.answers)])
        pairs = self._strategy(self.state, as_count(n_queries, "n_queries"), rng)
        return [(int(i), int(j)) for i, j in pairs]

    def answer(self, i: int, j: int, answer: str | bool | None) -> None:  # noqa: FBT001
        """Record what is said about a pair: any pair, asked or not.

        Parameters
        ----------
        i, j : int
            Two different samples.
        answer : {"same", "different", "unknown"} or bool or None
            Whether they belong together. "unknown" (None) is remembered and entails nothing.

        Raises
        ------
        ConflictError
            If earlier answers and certain prior knowledge entail the opposite; with the proof. The
            answer is not recorded.
        RuntimeError
            If another session wrote to the file. The answer is not recorded.
        """
        pair = self._pair(i, j)
        said = _said(answer)
        if not self.noisy and said != "unknown":
            self._refuse_contradiction(pair, said)
        record = Answer(*pair, said)
        if self._journal is not None:
            self._journal.append(record._asdict())
        self._add(record)

    def undo(self) -> Answer:
        """Take back the last answer and return it."""
        if not self.answers:
            message = "There is no answer to take back."
            raise ValueError(message)
        if self._journal is not None:
            self._journal.append({"undo": True})
        return self._remove_last()

    def _add(self, record: Answer) -> None:
        self.answers.append(record)
        self._known = {}

    def _remove_last(self) -> Answer:
        removed = self.answers.pop()
        self._known = {}
        # Labels are kept by the number of answers, which other answers may now follow.
        self._fits = {n: fit for n, fit in self._fits.items() if n <= len(self.answers)}
        return removed

    def _pair(self, i: Any, j: Any) -> Pair:
        for value in (i, j):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                message = f"A sample is an integer, got {value!r}."
                raise TypeError(message)
            if not 0 <= value < self.n_samples:
                message = (
                    f"There is no sample {value}: there are {self.n_samples} "
                    f"(valid indices are 0..{self.n_samples - 1})."
                )
                raise IndexError(message)
        if i == j:
            message = f"Sample {i} is paired with itself. Name two different samples."
            raise ValueError(message)
        return (int(min(i, j)), int(max(i, j)))

    def _refuse_contradiction(self, pair: Pair, said: str) -> None:
        try:
            certain = self._constraints(self.answers).certain
            refuse(certain, pair, said, self.n_clusters)
        except ConflictError as error:
            message = (
                f"Samples {pair[0]} and {pair[1]} cannot be answered with {said!r}: {error} "
                "The answer is not recorded; undo() takes back earlier ones."
            )
            raise ConflictError(
                message,
                error.witness,
                kind=error.kind,
                must_link=error.must_link,
                cannot_link=error.cannot_link,
                labelled=error.labelled,
                bracket=error.bracket,
            ) from error

    # What is known -------------------------------------------------------------------------

    def _constraints(self, answers: list[Answer]) -> Constraints:
        last = {(a.i, a.j): a.answer for a in answers}
        before = self._start.table
        if not self.noisy:  # an answer replaces a guess about the same pair
            answered = [i * self.n_samples + j for (i, j), a in last.items() if a != "unknown"]
            keys = pair_keys(before.pairs, self.n_samples)
            before = before.kept((before.belief == 1) | ~np.isin(keys, answered))
        same, different = (
            np.array([pair for pair, a in last.items() if a == answer], np.intp).reshape(-1, 2)
            for answer in ("same", "different")
        )
        belief = NOISY_BELIEF if self.noisy else 1.0
        given = PairTable.of(same, different, must_link_belief=belief, cannot_link_belief=belief)
        return Constraints.from_table(
            self.n_samples, before.joined(given), labels=self._start.labels
        )

    def _state(self, answers: list[Answer]) -> State:
        last = {(a.i, a.j): a.answer for a in answers}
        return State(
            self.W,
            self.n_clusters,
            self._constraints(answers),
            X=None if self._is_graph or issparse(self._data) else self._data,
            unknown=[pair for pair, said in last.items() if said == "unknown"],
            last=(answers[-1].i, answers[-1].j) if answers else None,
            noisy=self.noisy,
            fit=lambda _: self._labels(len(answers)),
            shared=self._shared,
        )

    @property
    def state(self) -> State:
        """What strategies look at."""
        if "state" not in self._known:
            self._known["state"] = self._state(self.answers)
        state: State = self._known["state"]
        return state

    @property
    def constraints(self) -> Constraints:
        """The answers, and what was known before them; "unknown" is no constraint."""
        return self.state.constraints

    # The clustering ------------------------------------------------------------------------

    @property
    def labels(self) -> Ints:
        """The clustering under the answers so far; computed when it is looked at."""
        return self._labels(len(self.answers))

    def _labels(self, n_answers: int) -> Ints:
        """Return the clustering after the first `n_answers` answers."""
        if n_answers not in self._fits:
            is_now = n_answers == len(self.answers)
            state = self.state if is_now else self._state(self.answers[:n_answers])
            data = self.W if self._model.get_params().get("affinity") == "precomputed" else None
            with warnings.catch_warnings():
                # It was said when the session began.
                warnings.simplefilter("ignore", DisconnectedGraphWarning)
                fitted = clone(self._model).fit(
                    self._data if data is None else data, constraints=state.evidence
                )
            self._fits[n_answers] = fitted.labels_
            for old in [n for n in self._fits if n < n_answers - WINDOW]:
                del self._fits[old]
        return self._fits[n_answers]

    @property
    def stability(self) -> float:
        """How little the last five answers changed the clustering; 1 if nothing.

        The mean adjusted Rand index between the labels now and those before the last answer,
        before the last two, and so on up to five. NaN before the first answer.
        """
        now = len(self.answers)
        before = range(max(0, now - WINDOW), now)
        if not before:
            return float("nan")
        labels = self.labels
        return float(np.mean([adjusted_rand_score(self._labels(n), labels) for n in before]))

    # Keeping it ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session to a file that `load` reads. Later answers are not added to it."""
        write(Path(path), [self._header(), *(a._asdict() for a in self.answers)])

    def _header(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "data": fingerprint(self._data),
            "n_samples": self.n_samples,
            "n_clusters": self.n_clusters,
            "strategy": self._strategy_name,
            "method": self._method_name,
            "noisy": self.noisy,
            "seed": self._seed,
        }

    def _resume(self, kept: Journal, header: dict[str, Any]) -> None:
        mine = self._header()
        if header["data"] != mine["data"]:
            message = (
                f"{kept.path} keeps answers about other data ({header['n_samples']} samples; "
                f"these are {self.n_samples}, or other values). Give the data it was begun with, "
                "or choose another path."
            )
            raise ValueError(message)
        for name in ("n_clusters", "strategy", "method", "noisy", "seed"):
            if header[name] != mine[name]:
                message = (
                    f"{kept.path} was begun with {name}={header[name]!r}, not {mine[name]!r}. "
                    "Session.load takes the settings from the file; for others choose another path."
                )
                raise ValueError(message)
        for number, record in enumerate(kept.records, 2):
            try:
                if record.get("undo"):
                    self._remove_last()
                else:
                    pair = self._pair(record["i"], record["j"])
                    self._add(Answer(*pair, _said(record["answer"])))
            except (LookupError, TypeError, ValueError) as error:
                message = f"Line {number} of {kept.path} is not an answer: {error!r}."
                raise ValueError(message) from error


# Settings ----------------------------------------------------------------------------------


def _said(answer: str | bool | None) -> str:  # noqa: FBT001
    if answer is None or isinstance(answer, bool | np.bool_):
        return ANSWERS[None if answer is None else bool(answer)]
    if answer in ANSWERS.values():
        return str(answer)
    message = (
        f'An answer is "same", "different" or "unknown" (or True, False, None), not {answer!r}.'
    )
    raise ValueError(message)


def _strategy(strategy: str | Strategy) -> tuple[Strategy, str]:
    if callable(strategy):
        return strategy, getattr(strategy, "__name__", type(strategy).__name__)
    if strategy in STRATEGIES:
        return STRATEGIES[strategy], strategy
    message = f"There is no strategy {strategy!r}; choose of {', '.join(STRATEGIES)}."
    raise ValueError(message)


def _data_and_graph(data: Any, affinity: Any) -> tuple[Any, Any]:
    """Return validated data and their graph, which are the same if the graph is given."""
    data = check_array(data, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
    if isinstance(affinity, str):
        if affinity != "precomputed":
            message = f'affinity is an Affinity, "precomputed" or None, not {affinity!r}.'
            raise ValueError(message)
        W = check_affinity(data)
        return W, W
    builder = Affinity() if affinity is None else clone(affinity)
    return data, builder.fit_transform(data)


def _checked(constraints: Constraints | None, n_samples: int, n_clusters: int) -> Constraints:
    if constraints is None:
        return Constraints(n_samples)
    if constraints.n_samples != n_samples:
        message = f"The constraints are about {constraints.n_samples} samples, not {n_samples}."
        raise ValueError(message)
    constraints.check(n_clusters)
    return constraints


def _seed(random_state: Any, header: dict[str, Any] | None) -> int:
    """Return a number that a file can keep."""
    if random_state is None and header is not None:
        return int(header["seed"])
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _model(method: str | ConstrainedClusterer, session: Session, affinity: Any) -> Any:
    """Return the estimator that clusters, on the graph of the session where it can take it."""
    if isinstance(method, str):
        if method not in METHODS:
            message = f"There is no method {method!r}; choose of {', '.join(METHODS)}."
            raise ValueError(message)
        model = METHODS[method](session.n_clusters)
        if "hard" in model.get_params():
            model.set_params(hard=not session.noisy)
    else:
        model = clone(method)
    settings: dict[str, Any] = {"n_clusters": session.n_clusters}
    names = model.get_params(deep=False)
    if "random_state" in names and names["random_state"] is None:
        settings["random_state"] = session._seed
    needed = signature(model._solver()).parameters
    if ("W" in needed and "X" not in needed) or (session._is_graph and not model.needs_features):
        settings["affinity"] = "precomputed"
    elif session._is_graph:
        message = f"{type(model).__name__} needs data, but only a graph is given."
        raise ValueError(message)
    elif "affinity" in names and names["affinity"] is None:
        settings["affinity"] = affinity
    return model.set_params(**settings)
