"""learning_curve: every method on every draw."""

from __future__ import annotations

import hashlib
from itertools import groupby
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from scipy.sparse import issparse

from linkwise._hints import hint
from linkwise._version import __version__
from linkwise.evaluate.data import Problem, check_finite, named_datasets, with_graph
from linkwise.evaluate.draws import counts, draw_constraints, fit_seed
from linkwise.evaluate.estimators import NamedEstimator, described, named_estimators
from linkwise.evaluate.measure import ANSWERED, CUTS, METRICS, Task, measure, pinned, skipped
from linkwise.evaluate.progress import Progress
from linkwise.evaluate.store import Key, Row, Store
from linkwise.evaluate.table import STATUSES, Curves
from linkwise.graph import Affinity

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator

    from linkwise.evaluate.draws import Amount, Kind

    # Data set and method: amount and seconds.
    _Slow: TypeAlias = dict[tuple[str, str], tuple[int, float]]


def learning_curve(  # noqa: PLR0913  (the settings of an experiment are as many as they are)
    datasets: Any,
    methods: Any,
    amounts: Iterable[Amount],
    *,
    kind: Kind = "pairs",
    share_of: str = "samples",
    nested: bool = False,
    n_draws: int = 10,
    metrics: Iterable[str] | None = None,
    affinity: Affinity | None = None,
    random_state: int = 0,
    path: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    retry: Collection[str] = (),
    progress: bool = True,
) -> Curves:
    """Fit every method on the same draws of constraints, and score the answers.

    The constraints of a draw depend on `random_state`, the name and the true classes of the data
    set, the amount and the number of the draw, and on nothing else: all methods get the same
    ones, now and in later runs. :func:`draw_constraints` returns them.

    Parameters
    ----------
    datasets : dict of name: (X, y), or one (X, y)
        Data with true classes. A value may also be a :class:`Problem`, which can hold a graph, or
        what a loader returns: of linkwise (then a list will do, as these have names) or of
        scikit-learn.
    methods : list
        What to compare: keys of :data:`linkwise.METHODS`, pairs of a name and an estimator, or
        pairs of a name and a function ``(X, constraints, n_clusters, random_state) -> labels``.
        See :class:`NamedEstimator` for what they are given.
    amounts : list of int, float or str
        How many pairs or labels: numbers, or shares as floats below 1 or as ``"10%"``. Shares may
        exceed ``"100%"`` where that is possible. 0 is no constraint at all.
    kind : {"pairs", "labels", "stratified", "per_class"} or callable, default="pairs"
        What is drawn.

        - "pairs": pairs of samples, all equally likely, linked by their true classes;
        - "labels": the true labels of samples, all equally likely;
        - "stratified": labels, of each class in its proportion, and at least one of each class if
          there are as many labels as classes;
        - "per_class": this many labels of each class (all of a smaller class);
        - a function ``(y, amount, random_state) -> Constraints``.
    share_of : {"samples", "pairs"}, default="samples"
        What a share is a share of: the number of samples, or the number n (n - 1) / 2 of all
        pairs. The latter is for ``kind="pairs"``.
    nested : bool, default=False
        Whether the constraints of a draw grow: those of a larger amount hold those of a smaller
        one. Curves get smoother, as all their points share the luck of the draw.
    n_draws : int, default=10
        Draws for each data set and amount.
    metrics : list of str, default=None
        Names of scores, see :func:`linkwise.metrics.scores`; None for all of them.
    affinity : Affinity, default=None
        Builder of the graph that is built once per data set, for all methods that have an
        `affinity` and leave it at None, and for the cuts among the metrics. None for the default
        one. The time that it takes is in no row.
    random_state : int, default=0
        The seed of everything. All fits of one draw get the same seed, which does not depend on
        method and amount.
    path : str or path-like, default=None
        A file to which every row is added as soon as it is known. If it exists, the fits that it
        holds are not done again; other settings raise an error. Data sets, methods, amounts and
        draws may be added.
    n_jobs : int, default=None
        Processes; -1 for as many as there are cores. Each computes on one thread, so the numbers
        are the same for any `n_jobs`.
    time_limit : float, default=None
        Wall seconds. No fit is interrupted: one that takes longer gets the status "slow", and
        the fits of that method with more constraints on that data set are skipped.
    retry : collection of str, default=()
        Statuses whose fits are done again although the file holds them, such as ``{"skipped"}``.
    progress : bool, default=True
        Show a bar (with tqdm, in a terminal) or now and then a line, on the error stream.

    Returns
    -------
    Curves
        One row per data set, method, amount and draw, with a status: "ok", "slow", "infeasible"
        (ConflictError), "too large" (TooLargeError, MemoryError), "failed" (any other exception)
        or "skipped".

    Examples
    --------
    >>> from linkwise.datasets import make_xor
    >>> curves = learning_curve(
    ...     {"xor": make_xor(random_state=0)}, ["ncut", "signed"], [0, 40], n_draws=3
    ... )
    >>> print(curves.summary("adjusted_rand", columns=("data", "method", "amount", "n", "mean")))
    data  method  amount  n  mean
    xor   ncut         0  3  -0.0263
    xor   ncut        40  3  -0.0263
    xor   signed       0  3  -0.0263
    xor   signed      40  3  1
    """
    sets, estimators = named_datasets(datasets), named_estimators(methods)
    chosen = _chosen(metrics)
    _check_settings(n_draws=n_draws, random_state=random_state, retry=retry)
    amounts = list(amounts)
    grid = {
        name: counts(amounts, s.y, kind=kind, share_of=share_of, data=name)
        for name, s in sets.items()
    }
    builder = Affinity() if affinity is None else affinity
    settings = {
        "random_state": int(random_state),
        "kind": described(kind) if callable(kind) else kind,
        "nested": bool(nested),
        "metrics": list(chosen),
        "affinity": described(builder),
        "linkwise": __version__,
        "data": {name: _digest(s) for name, s in sets.items()},
        "methods": {e.name: described(e.estimator) for e in estimators},
    }
    plan = _Plan(
        datasets=sets,
        estimators=estimators,
        amounts=grid,
        n_draws=int(n_draws),
        settings=settings,
        kind=kind,
        affinity=builder,
        metrics=chosen,
        time_limit=time_limit,
    )
    plan.check()
    with Store(path, settings) as store:
        _fill(store, plan, frozenset(retry), n_jobs=n_jobs, progress=progress)
        rows = [store.rows[key] for key in plan.fits()]
    return Curves(rows, settings)


class _Plan(NamedTuple):
    """What is to be done."""

    datasets: dict[str, Problem]
    estimators: list[NamedEstimator]
    amounts: dict[str, list[int]]
    n_draws: int
    settings: dict[str, Any]
    kind: Kind
    affinity: Affinity
    metrics: tuple[str, ...]
    time_limit: float | None

    def fits(self) -> Iterator[Key]:
        """Yield what identifies each fit, in the order in which they are done."""
        for data, amounts in self.amounts.items():
            for amount in amounts:
                for draw in range(self.n_draws):
                    for one in self.estimators:
                        yield data, one.name, amount, draw

    def tasks(self, keys: Iterable[Key]) -> Iterator[Task]:
        """Yield the fits; the constraints of a draw are drawn once for all methods."""
        by_name = {one.name: one for one in self.estimators}
        seed = self.settings["random_state"]
        for (data, amount, draw), group in groupby(keys, key=lambda key: (key[0], *key[2:])):
            constraints = draw_constraints(
                self.datasets[data].y,
                amount,
                kind=self.kind,
                data=data,
                repetition=draw,
                nested=self.settings["nested"],
                random_state=seed,
            )
            for _, method, *_ in group:
                yield Task(
                    data=data,
                    estimator=by_name[method],
                    amount=amount,
                    draw=draw,
                    constraints=constraints,
                    seed=fit_seed(seed, data, draw),
                )

    @property
    def wants_graph(self) -> bool:
        """Whether anything needs the graphs."""
        return bool(CUTS & set(self.metrics)) or any(e.wants_graph for e in self.estimators)

    def check(self) -> None:
        """Raise if a graph cannot be built, before the fits on other data sets."""
        if self.wants_graph:
            for name, dataset in self.datasets.items():
                check_finite(dataset, name)

    def prepared(self, data: str) -> Problem:
        """Return a data set, with its graph if anything needs one."""
        if not self.wants_graph and self.datasets[data].W is None:
            return self.datasets[data]
        try:
            with pinned():
                return with_graph(self.datasets[data], self.affinity)
        except ValueError as error:
            raise ValueError(f"Data set {data!r}: {error}") from error


def _fill(
    store: Store, plan: _Plan, retry: frozenset[str], *, n_jobs: int | None, progress: bool
) -> None:
    """Do the fits that the store lacks.

    The graph is built once a data set. Nothing else is carried from fit to fit: every row depends
    on its own data, constraints and seed only, so that a resumed run gives the same rows, and the
    seconds of a row are those of a fit that starts cold on a given graph.
    """
    pending = [
        key for key in plan.fits() if key not in store.rows or store.rows[key]["status"] in retry
    ]
    shown = Progress(len(pending), shown=progress)
    try:
        for data, keys in groupby(pending, key=lambda key: key[0]):
            dataset = plan.prepared(data)  # X, W, y
            for batch in _batches(keys, plan.time_limit):
                slow = _slow(store.rows.values(), plan.time_limit)
                # Constraints -> labels -> scores
                for row in _rows(plan, dataset, batch, slow=slow, n_jobs=n_jobs):
                    store.add(row)
                    shown.step(failed=row["status"] not in ANSWERED)
    finally:
        shown.close()


def _batches(keys: Iterable[Key], time_limit: float | None) -> Iterator[list[Key]]:
    """Yield the fits of one data set: with a limit, amount by amount, as each decides the next."""
    if time_limit is None:
        yield list(keys)
    else:
        for _, batch in groupby(keys, key=lambda key: key[2]):
            yield list(batch)


def _rows(
    plan: _Plan, dataset: Problem, batch: list[Key], *, slow: _Slow, n_jobs: int | None
) -> Iterator[Row]:
    """Yield the rows of a batch in its order, those that are skipped first."""
    hopeless = {key for key in batch if slow.get(key[:2], (key[2], 0.0))[0] < key[2]}
    for task in plan.tasks(key for key in batch if key in hopeless):
        amount, seconds = slow[task.data, task.estimator.name]
        message = (
            f"With amount {amount} a fit took {seconds:.3g} s; the limit is {plan.time_limit:g} s."
        )
        yield skipped(task, dataset, plan.metrics, message=message)
    tasks = plan.tasks(key for key in batch if key not in hopeless)
    if effective_n_jobs(n_jobs) == 1:
        for task in tasks:
            yield measure(task, dataset, plan.metrics, time_limit=plan.time_limit)
        return
    with parallel_config(backend="loky", inner_max_num_threads=1):
        # In the order of the tasks; large arrays are shared, and copied when written to.
        parallel = Parallel(n_jobs=n_jobs, return_as="generator", mmap_mode="c")
    yield from parallel(
        delayed(measure)(task, dataset, plan.metrics, time_limit=plan.time_limit) for task in tasks
    )


def _slow(rows: Iterable[Row], time_limit: float | None) -> _Slow:
    """Return the smallest amount at which a fit exceeded the limit, and its seconds."""
    found: _Slow = {}
    for row in rows:
        curve = row["data"], row["method"]
        if time_limit is not None and row["seconds"] > time_limit:
            found[curve] = min(
                found.get(curve, (row["amount"], np.inf)), (row["amount"], row["seconds"])
            )
    return found


# Checks, and the fingerprint of the settings ---------------------------------------------------


def _chosen(metrics: Iterable[str] | None) -> tuple[str, ...]:
    if metrics is None:
        return METRICS
    names = [metrics] if isinstance(metrics, str) else list(dict.fromkeys(metrics))
    for name in names:
        if name not in METRICS:
            raise ValueError(f"There is no metric {name!r}.{hint(name, METRICS, listed=METRICS)}")
    if not names:
        raise ValueError("metrics is empty. Name at least one score, or pass None for all.")
    return tuple(names)


def _check_settings(*, n_draws: Any, random_state: Any, retry: Any) -> None:
    if not isinstance(n_draws, Integral) or n_draws < 1:
        raise ValueError(f"n_draws must be a positive integer, got {n_draws!r}.")
    if not isinstance(random_state, Integral) or random_state < 0:
        raise ValueError(
            f"random_state must be an integer from 0 up, got {random_state!r}: a run can only be "
            "continued if its draws can be drawn again."
        )
    unknown = set(retry) - set(STATUSES)
    if isinstance(retry, str) or unknown:
        raise ValueError(f"retry must be a set of {', '.join(map(repr, STATUSES))}; got {retry!r}.")


def _digest(dataset: Problem) -> str:
    """Return a fingerprint of the data."""
    hashed = hashlib.sha256()
    for value in (dataset.X, dataset.y, dataset.W):
        parts = (value.data, value.indices, value.indptr) if issparse(value) else (value,)
        for part in parts:
            array = np.asarray(part)
            hashed.update(f"{array.shape} {array.dtype.kind} ".encode())
            if array.dtype.kind in "biuf":  # bytes of other kinds are addresses
                hashed.update(np.ascontiguousarray(array).tobytes())
            else:
                hashed.update(repr(array.tolist()).encode())
    shape = None if dataset.X is None else dataset.X.shape
    hashed.update(f"{shape} {dataset.n_clusters}".encode())
    return hashed.hexdigest()[:16]
