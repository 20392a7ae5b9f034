"""Session: ask, answer, cluster again; nothing that was answered is lost."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from linkwise.active.answers import (
    Answer,
    as_pair,
    constraints_of,
    graded,
    uncertain_pairs,
)
from linkwise.active.committee import Proposal, committee, propose
from linkwise.active.entail import check_answer
from linkwise.active.fits import Fits, due_after
from linkwise.active.journal import FORMAT, Journal, fingerprint, write
from linkwise.active.kept import KeepsAnswers
from linkwise.active.model import Model
from linkwise.active.packed import packed, unpacked
from linkwise.active.spectral import boundary, xu
from linkwise.active.state import Cache, State
from linkwise.active.strategies import explore, random, uncertainty
from linkwise.constraints import Constraints
from linkwise.constraints.validation import as_count
from linkwise.exceptions import ConflictError
from linkwise.graph import Prepared

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from linkwise._types import Floats, Graph, Ints
    from linkwise.active.answers import Given
    from linkwise.active.hypotheses import Beliefs
    from linkwise.active.strategies import Pair, Strategy
    from linkwise.constraints.conflict import Suspect
    from linkwise.methods import ConstrainedClusterer

STRATEGIES: dict[str, Strategy] = {
    "committee": committee,
    "random": random,
    "xu": xu,
    "explore": explore,
    "uncertainty": uncertainty,
    "boundary": boundary,
}

WINDOW = 5  # answers that `stability` looks back


class Session(KeepsAnswers):
    """Questions about pairs of samples, their answers, and the clustering under them.

    Parameters
    ----------
    data : array-like or sparse matrix of shape (n_samples, n_features)
        The samples; or, with ``affinity="precomputed"``, the graph of shape
        (n_samples, n_samples); or a :class:`~linkwise.Prepared`, whose graph is used. Strategies
        that look at distances take those of the embedding where data are sparse or only the
        graph is given.
    n_clusters : int or "auto"
        The number of clusters, none of which is empty. With ``"auto"`` the answers reveal it,
        by the strategy ``"committee"`` or ``"random"`` and the method ``"auto"``.
    strategy : {"committee", "random", "xu", "explore", "uncertainty", "boundary"} or callable, \
default="committee"
        How questions are chosen; see ``linkwise.active.STRATEGIES``. Change it to compare
        strategies.
    method : str or estimator, default="auto"
        How samples are clustered: a key of ``linkwise.METHODS`` or an estimator. A method given
        by its key satisfies every answer where it can (``hard=True``), unless `noisy`. Change it
        if another method suits your data better.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built, once; None means ``Affinity()``. Give one to choose the graph
        yourself.
    constraints : Constraints, default=None
        What is known before the first question. Pairs of belief below 1 exclude no answer, and
        an answer about such a pair replaces it. Give what you know.
    noisy : bool, default=False
        Whether answers may be wrong. They are then constraints of belief 0.9: an answer may
        contradict others, and nothing is taken to follow from them. Set it if people may err.
    random_state : int, RandomState instance or None, default=None
        Seed of the questions and of the clustering. Give a number to get the same questions every
        time.
    path : str or path-like, default=None
        A file that keeps every answer as soon as it is given. If it exists the session goes on
        where it was left. One session at a time writes to it. Give one if answers must not be
        lost.
    callback : callable, default=None
        Called as ``callback(share, what)`` while samples are clustered by :class:`~linkwise.Auto`,
        with the share of the work that is done. Use it to show progress in a program of your own.

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
        n_clusters: int | str,
        *,
        strategy: str | Strategy = "committee",
        method: str | ConstrainedClusterer = "auto",
        affinity: Any = None,
        constraints: Constraints | None = None,
        noisy: bool = False,
        random_state: int | np.random.RandomState | None = None,
        path: str | os.PathLike[str] | None = None,
        callback: Callable[[float, str], None] | None = None,
    ) -> None:
        self.n_clusters = _number(n_clusters)
        self.noisy = noisy
        self._strategy, self._strategy_name = _strategy(strategy)
        # X, and the graph W of its neighbours
        self._data = Prepared.of(data, affinity)
        self.W: Graph = self._data.W
        self.n_samples = self._data.n_samples
        if isinstance(self.n_clusters, int) and self.n_clusters > self.n_samples:
            raise ValueError(f"n_clusters={n_clusters} is more than the {self.n_samples} samples.")
        # At most one cluster a sample, if the number is unknown
        self._most = self.n_samples if isinstance(self.n_clusters, str) else self.n_clusters
        self._prior = _checked(constraints, self.n_samples, self._most)
        # The file of answers
        super().__init__(path)
        header = None if self._journal is None else self._journal.header
        self._seed = _seed(random_state, header)
        # The estimator, W and its warm starts
        self._model = Model(
            method, self._data, n_clusters=self.n_clusters, hard=not noisy, seed=self._seed
        )
        self._model.callback = callback
        self._fits = Fits(self._committee_model(), self._prior, noisy=noisy)
        _check_number(self.n_clusters, self._strategy_name, self._model)
        # What follows from the answers; labels by the number of answers
        self._cache = Cache()
        self._current: State | None = None
        self._question: list[Pair | None] | None = None
        self._labels: dict[int, Ints] = {}
        self._written: Ints | None = None  # the last labels in the file
        self._beliefs: Beliefs | None = None
        self._take_up()

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
            f"strategy={self._strategy_name!r}, method={self._model.name!r}, "
            f"answers={len(self.answers)})"
        )

    def _committee_model(self) -> Model:
        """Return the Auto whose candidates are told apart."""
        model = self._model
        if not model.is_auto:
            k, hard = self.n_clusters, not self.noisy
            model = Model("auto", self._data, n_clusters=k, hard=hard, seed=self._seed)
            model.callback = self._model.callback
        return model

    # Asking --------------------------------------------------------------------------------

    def next(self) -> Pair | None:
        """Return the pair to ask about, the same until something is answered; None at the end."""
        if self._question is None:
            self._question = [next(iter(self.batch(1)), None)]
        return self._question[0]

    def batch(self, n_queries: int) -> list[Pair]:
        """Return several pairs to ask about at once, at most `n_queries`."""
        # One stream per number of answers: resuming and undoing lead to the same questions.
        rng = np.random.RandomState([self._seed, len(self.answers)])
        pairs = self._strategy(self.state, as_count(n_queries, "n_queries"), rng)
        return [(int(i), int(j)) for i, j in pairs]

    def proposals(self, n_queries: int) -> list[Proposal]:
        """Return several questions at once, of different things, without clustering again.

        They rest on the last clustering that is there and on all answers. Unlike `batch`, the same
        answers may therefore lead to other questions.

        Parameters
        ----------
        n_queries : int
            The number of questions; fewer are returned if there are no more.

        Returns
        -------
        list of Proposal
            The samples `i` and `j`, and the `probability` that they belong together.
        """
        n_queries = as_count(n_queries, "n_queries")
        return propose(self._quick_state(), n_queries)

    def answer(self, i: int, j: int, answer: Given) -> None:
        """Record the answer about a pair: any pair, asked or not.

        Parameters
        ----------
        i, j : int
            Two different samples.
        answer : {"same", "different", "unknown"} or bool or None or float
            Whether they belong together. "unknown" (None) is kept and entails nothing. A number is
            the probability `p` that they do: evidence of belief ``|2 p - 1|``, and a fact only if
            it is 0 or 1. The words of files ("yes", "Must-link", "diff") are answers too.

        Raises
        ------
        ConflictError
            If earlier answers and certain prior knowledge entail the opposite; with the proof. The
            answer is not recorded.
        RuntimeError
            If another session wrote to the file. The answer is not recorded.
        """
        record = Answer(*as_pair(i, j, self.n_samples), *graded(answer))
        if not self.noisy and record.is_fact:
            self._check_consistent(record)
        shown = self._labels.get(len(self.answers))
        kept = {} if shown is None else {"labels": packed(shown, self._written)}
        self._commit({**record._asdict(), **kept}, [*self.answers, record])
        self._written = self._written if shown is None else shown

    def _forget(self, n_answers: int) -> None:
        self._current = self._question = None
        # Labels are kept by the number of answers, which other answers may now follow.
        self._labels = {n: found for n, found in self._labels.items() if n <= n_answers}

    def _check_consistent(self, record: Answer) -> None:
        """Raise ConflictError if the opposite of an answer is known."""
        i, j, answer = record
        try:
            known = self.n_clusters if isinstance(self.n_clusters, int) else None
            check_answer(self.constraints.certain, record, known)
        except ConflictError as error:
            message = (
                f"Samples {i} and {j} cannot be answered with {answer!r}: {error} "
                "The answer is not recorded; undo() takes back earlier ones."
            )
            explained = copy(error)  # with its proof
            explained.args = (message,)
            raise explained from error

    # What is known -------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """What strategies look at."""
        if self._current is None:
            self._current = self._state(len(self.answers))
        return self._current

    def _state(self, n_answers: int) -> State:
        answers = self.answers[:n_answers]
        return State(
            self._data,
            self._most,
            constraints_of(answers, self._prior, noisy=self.noisy),
            unknown=uncertain_pairs(answers),
            last=answers[-1][:2] if answers else None,
            noisy=self.noisy,
            fit=lambda _: self._labels_after(n_answers),
            believe=lambda: self._believed(answers[: due_after(n_answers)], answers),
            is_number_known=isinstance(self.n_clusters, int),
            cache=self._cache,
        )

    @property
    def constraints(self) -> Constraints:
        """The answers, and what was known before them; "unknown" is no constraint."""
        return self.state.constraints

    # The clustering ------------------------------------------------------------------------

    @property
    def labels(self) -> Ints:
        """The clustering under the answers so far; computed when it is looked at."""
        return self._labels_after(len(self.answers))

    def _labels_after(self, n_answers: int) -> Ints:
        """Return the clustering after the first `n_answers` answers."""
        if self._model.is_auto:
            return self._fits.after(self.answers[:n_answers]).labels
        return self._shown_after(n_answers)

    def _shown_after(self, n_answers: int) -> Ints:
        """Return what was shown after the first `n_answers` answers.

        By Auto it is the clustering of the last fit that was due, with later answers.
        """
        if n_answers not in self._labels:
            answers = self.answers[:n_answers]
            if self._model.is_auto:
                shown = self._believed(answers[: due_after(n_answers)], answers).labels
            else:
                is_now = n_answers == len(self.answers)
                state = self.state if is_now else self._state(n_answers)
                shown = self._model.labels(state.evidence)
            self._labels[n_answers] = shown
            for old in [n for n in self._labels if n < n_answers - WINDOW]:
                del self._labels[old]
        return self._labels[n_answers]

    def refit(self) -> Ints:
        """Cluster again under the answers so far, and return the labels.

        It may run in another thread while questions are answered in this one: `provisional`,
        `proposals` and `still_to_change` use it as soon as it is there.
        """
        return self._labels_after(len(self.answers))

    @property
    def n_clustered(self) -> int:
        """The number of answers that the last clustering rests on."""
        return len(self._fits.latest(self.answers).answers)

    @property
    def n_clusters_now(self) -> int:
        """The number of clusters; if it is unknown, that of the last clustering."""
        if isinstance(self.n_clusters, int):
            return self.n_clusters
        return self._fits.latest(self.answers).n_clusters

    @property
    def refit_is_due(self) -> bool:
        """Whether so many answers came since the last clustering that it is time for another."""
        return self.n_clustered < due_after(len(self.answers))

    @property
    def provisional(self) -> Ints:
        """The last clustering, with the samples in later answers where these say; at once."""
        return self._beliefs_now().labels

    @property
    def probability(self) -> Floats:
        """The probability of each cluster of `provisional` for each sample; at once."""
        return self._beliefs_now().consensus

    @property
    def still_to_change(self) -> float:
        """The expected share of samples that more answers would move to another cluster.

        Below 0.02 stop: more answers will hardly change anything. From 0.1 on many will move.
        """
        return self._beliefs_now().still_to_change

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """The answers and constraints, the one most likely wrong first, by the last clustering."""
        return self._fits.latest(self.answers).suspects

    def _beliefs_now(self) -> Beliefs:
        """Return what the candidates of the last clustering say, given all answers."""
        answers = list(self.answers)
        return self._believed(self._fits.latest(answers).answers, answers)

    def _believed(self, fitted: Sequence[Answer], answers: Sequence[Answer]) -> Beliefs:
        """Return what the candidates of a fit under the first answers say, given all."""
        self._beliefs = self._fits.after(fitted).beliefs(answers, self._beliefs)
        return self._beliefs

    def _quick_state(self) -> State:
        return replace(self.state, believe=self._beliefs_now)

    @property
    def stability(self) -> float:
        """How little the last five answers changed the clustering; 1 if nothing.

        The mean adjusted Rand index between the labels now and those before the last answer,
        before the last two, and so on up to five. NaN before the first answer. The labels are those
        that are shown between two clusterings by :class:`~linkwise.Auto`.
        """
        now = len(self.answers)
        before = range(max(0, now - WINDOW), now)
        if not before:
            return float("nan")
        labels = self._shown_after(now)
        return float(np.mean([adjusted_rand_score(self._shown_after(n), labels) for n in before]))

    # Keeping it ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the session to a file that `load` reads. Later answers are not added to it."""
        write(Path(path), [self._header(), *(a._asdict() for a in self.answers)])

    def _header(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "data": fingerprint(self._data.X),
            "n_samples": self.n_samples,
            "n_clusters": self.n_clusters,
            "strategy": self._strategy_name,
            "method": self._model.name,
            "noisy": self.noisy,
            "seed": self._seed,
        }

    def _recall(self, record: dict[str, Any], answers: list[Answer]) -> None:
        """Take the labels that were shown before an answer: they need not be found again."""
        n_answers = len(answers)
        # Labels after more answers belong to answers that were taken back.
        self._labels = {n: found for n, found in self._labels.items() if n <= n_answers}
        if "labels" in record:
            self._written = unpacked(record["labels"], self._written)
            self._labels[n_answers] = self._written
            self._fits.recall(answers, self._written)


# Settings ----------------------------------------------------------------------------------


def _strategy(strategy: str | Strategy) -> tuple[Strategy, str]:
    if callable(strategy):
        return strategy, getattr(strategy, "__name__", type(strategy).__name__)
    if strategy in STRATEGIES:
        return STRATEGIES[strategy], strategy
    raise ValueError(f"There is no strategy {strategy!r}; choose of {', '.join(STRATEGIES)}.")


def _number(n_clusters: Any) -> int | str:
    if isinstance(n_clusters, str):
        if n_clusters == "auto":
            return n_clusters
        raise ValueError(f'n_clusters is a number or "auto", not {n_clusters!r}.')
    return as_count(n_clusters, "n_clusters", minimum=2)


def _check_number(n_clusters: int | str, strategy: str, model: Model) -> None:
    """Raise ValueError if a strategy or a method needs to know the number of clusters."""
    if isinstance(n_clusters, int):
        return
    if strategy in STRATEGIES and strategy not in ("committee", "random"):
        raise ValueError(
            f'The strategy {strategy!r} needs the number of clusters, but n_clusters is "auto". '
            'Give the number, or use strategy="committee".'
        )
    if not model.is_auto:
        raise ValueError(
            f'The method {model.name!r} needs the number of clusters, but n_clusters is "auto". '
            'Give the number, or use method="auto".'
        )


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
