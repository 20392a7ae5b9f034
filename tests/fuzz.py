"""Random fits of all methods: an answer or a clear refusal, promises kept, nothing left behind.

``python tests/fuzz.py --seconds 900`` draws cases until the time is over, and prints the seed and a
minimal call of each that fails. ``--case SEED`` repeats one. `make fuzz SECONDS=900` does the same.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, lil_array

from linkwise import METHODS, Affinity, Constraints
from linkwise._quiet import recorded
from linkwise._threads import controller

FOREIGN = ("Number of distinct clusters",)  # warnings of libraries in categories that are ours
REFUSALS = (ValueError, TypeError)  # ConflictError and TooLargeError are ValueErrors
HARD = {"cosc", "cut"}  # promise that every certain constraint holds, besides `hard=True`
KEYS = tuple(METHODS)
SCALES = (1.0, 1.0, 1.0, 1e-3, 1e6, 1e-100, 1e100, 1e-160, 1e155, 1e-300, 1e250)
TYPES = (np.float64, np.float64, np.float32, np.float16, np.int64, np.int8, np.bool_, object)
LAYOUTS = ("C", "F", "strided", "reversed", "read-only", "list", "csr", "csc", "coo", "lil")
SHAPES = (
    "blobs",
    "uniform",
    "duplicates",
    "line",
    "equal",
    "lattice",
    "far",
    "outlier",
    "constant",
)


@dataclass(frozen=True)
class Case:
    """A call, and what it was drawn from."""

    seed: int
    method: str
    settings: dict[str, Any]
    X: Any
    constraints: Constraints | None

    def fit(self) -> Any:
        model = METHODS[self.method](**self.settings)
        return model.fit(self.X, constraints=self.constraints)

    def __str__(self) -> str:
        values = self.X.toarray() if hasattr(self.X, "toarray") else np.asarray(self.X)
        known, pairs = self.constraints, ""
        if known is not None:
            labels = None if known.labels is None else known.labels.tolist()
            pairs = (
                f"Constraints({known.n_samples}, {known.must_link.tolist()}, "
                f"{known.cannot_link.tolist()}, labels={labels}, "
                f"must_link_belief={known.must_link_belief.tolist()}, "
                f"cannot_link_belief={known.cannot_link_belief.tolist()})"
            )
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return (
            f"seed {self.seed}: METHODS[{self.method!r}]({settings})\n"
            f"  .fit(np.array({values.tolist()}), constraints={pairs or None})\n"
            f"  X: {type(self.X).__name__} of {values.dtype}"
        )


# Drawing -----------------------------------------------------------------------------------


def drawn(seed: int, keys: tuple[str, ...] = KEYS) -> Case:
    """Draw a case; the same seed gives the same one."""
    rng = np.random.default_rng(seed)
    method = str(rng.choice(keys))
    n = int(rng.choice([2, 3, 5, 8, 13, 21, 40]))
    k = int(rng.integers(2, min(n, 6) + 1)) if rng.random() < 0.95 else int(rng.integers(1, n + 2))
    settings: dict[str, Any] = {"n_clusters": k, "random_state": int(rng.integers(1000))}
    parameters = METHODS[method]().get_params(deep=False)
    if "hard" in parameters and rng.random() < 0.4:
        settings["hard"] = True
    X: Any = stored(points(n, rng), rng)
    if "affinity" in parameters and rng.random() < 0.4:
        settings["affinity"], X = an_affinity(n, X, rng)
    # Drawn apart: the cases of a seed stay what they were before these settings were drawn.
    settings |= special_settings(method, np.random.default_rng([seed, 1]))
    return Case(seed, method, settings, X, some_constraints(n, k, rng))


def special_settings(method: str, rng: np.random.Generator) -> dict[str, Any]:
    """Settings of one method only that change what it promises."""
    if method == "cosc" and rng.random() < 0.5:
        number = int(rng.integers(5))
        return {"violations": "auto" if rng.random() < 0.3 else number, "refine": number != 4}
    if method == "linkage" and rng.random() < 0.5:
        threshold = None if rng.random() < 0.5 else float(rng.choice([-5.0, 0.0, 3.0, 1e6]))
        return {"n_clusters": None, "threshold": threshold, "neighbors": int(rng.integers(1, 20))}
    return {}


def points(n: int, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Samples of some degenerate geometry, at some scale."""
    d = int(rng.integers(1, 6))
    X = rng.normal(size=(n, d))
    group = rng.integers(3, size=n)
    shape = rng.choice(SHAPES)
    if shape == "blobs":
        X = X + 8 * rng.normal(size=(3, d))[group]
    elif shape == "uniform":
        X = rng.random((n, d))
    elif shape == "duplicates":
        X = X[rng.integers(max(1, n // 3), size=n)]
    elif shape == "line":
        X = np.outer(rng.normal(size=n), np.ones(d))
    elif shape == "equal":
        X = np.ones((n, d))
    elif shape == "lattice":
        X = rng.integers(3, size=(n, d)).astype(float)
    elif shape == "far":
        X = X + 1e8 * np.eye(3, d)[group]
    elif shape == "outlier":
        X[0] *= 1e12
    else:
        X[:, 0] = 7.0
    return X * rng.choice(SCALES)


def stored(X: np.ndarray[Any, Any], rng: np.random.Generator) -> Any:
    """Return samples in some type and layout; a few are not finite."""
    kind = TYPES[rng.integers(len(TYPES))]
    with np.errstate(all="ignore"):
        if kind not in (np.float64, object):
            X = np.clip(X, -100, 100)
        X = X.astype(kind)
    if rng.random() < 0.03 and X.dtype.kind == "f":
        X[rng.integers(len(X)), 0] = rng.choice([np.nan, np.inf, -np.inf])
    layout = rng.choice(LAYOUTS)
    if layout in {"csr", "csc", "coo", "lil"} and X.dtype.char not in "Oe":
        sparse = {"csr": csr_array, "csc": csc_array, "coo": coo_array, "lil": lil_array}
        return sparse[str(layout)](X)
    if layout == "F":
        return np.asfortranarray(X)
    if layout == "strided":
        return np.repeat(X, 2, axis=0)[::2]
    if layout == "reversed":
        return X[::-1]
    if layout == "read-only":
        X.flags.writeable = False
    return X.tolist() if layout == "list" else X


def an_affinity(n: int, X: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return another affinity, and the data: perhaps a graph of weights of very different size."""
    choice = rng.integers(4)
    if choice == 0:
        return Affinity(None), X
    if choice == 1:
        return Affinity(int(rng.integers(1, 6)), symmetrize=str(rng.choice(["mean", "mutual"]))), X
    W = rng.random((n, n)) * (rng.random((n, n)) < rng.choice([0.1, 0.4, 1.0]))
    if choice == 3:
        W *= 10.0 ** rng.integers(-20, 3, size=(n, n))
    W = np.triu(W, 1)
    W = W + W.T
    if rng.random() < 0.3:
        alone = rng.integers(n)
        W[alone] = W[:, alone] = 0
    return "precomputed", csr_array(W) if rng.random() < 0.5 else W


def some_constraints(n: int, k: int, rng: np.random.Generator) -> Constraints | None:
    """Constraints that agree with a partition, that do not, of any belief; or none."""
    if rng.random() < 0.1:
        return None
    y = rng.integers(max(k, 1), size=n)
    pairs = np.array(list(combinations(range(n), 2)))
    pairs = rng.permutation(pairs)[: rng.integers(0, min(len(pairs), 3 * n) + 1)]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    if rng.random() < 0.25:  # wrong pairs
        same = same ^ (rng.random(len(pairs)) < 0.3)
    beliefs = [np.ones(len(part)) for part in (pairs[same], pairs[~same])]
    if rng.random() < 0.3:
        beliefs = [rng.choice([0.3, 0.8, 1.0], size=belief.size) for belief in beliefs]
    labels = np.where(rng.random(n) < 0.3, y, -1) if rng.random() < 0.5 else None
    return Constraints(
        n,
        pairs[same],
        pairs[~same],
        labels=labels,
        must_link_belief=beliefs[0],
        cannot_link_belief=beliefs[1],
    )


# Checking ----------------------------------------------------------------------------------


def failure(case: Case) -> str | None:
    """Return what is wrong with a case; None if all is as promised."""
    filters, content = warnings.filters, list(warnings.filters)
    generator = _random_state()
    threads = [pool.num_threads for pool in controller().lib_controllers]
    content_of_X = content_of(case.X)
    try:
        with recorded() as heard:
            wrong = _answer_or_refusal(case)
    except Exception as error:  # anything else than a refusal is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({place.filename}:{place.lineno})"
    leaked = [w for w in heard if not _is_ours(w)]
    if wrong is None and leaked:
        wrong = f"leaked {leaked[0].category.__name__}: {leaked[0].message}"
    if warnings.filters is not filters or warnings.filters != content:
        wrong = "warning filters changed"
    if _random_state() != generator:
        wrong = "the global random state changed"
    if [pool.num_threads for pool in controller().lib_controllers] != threads:
        wrong = "the number of threads changed"
    if content_of(case.X) != content_of_X:
        wrong = "X was changed"
    return wrong


def _random_state() -> bytes:
    kind, keys, *places = np.random.get_state()  # noqa: NPY002
    return repr((kind, keys.tobytes(), places)).encode()


def _is_ours(warning: warnings.WarningMessage) -> bool:
    ours = issubclass(warning.category, UserWarning)
    return ours and not str(warning.message).startswith(FOREIGN)


def content_of(X: Any) -> Any:
    if hasattr(X, "toarray"):
        return X.toarray().tobytes()
    return repr(X) if isinstance(X, list) or X.dtype == object else X.tobytes()


def _answer_or_refusal(case: Case) -> str | None:
    try:
        model = case.fit()
    except REFUSALS as error:
        if len(str(error)) < 20:
            return f"unclear refusal: {error!r}"
        try:
            case.fit()
        except type(error) as again:
            return None if str(again) == str(error) else f"two refusals: {error} / {again}"
        return f"refused once only: {error}"
    labels = model.labels_
    n = len(content_rows(case.X))
    k = case.settings["n_clusters"] or n  # None: the method finds their number
    if labels.shape != (n,) or labels.dtype.kind != "i" or labels.min() < 0 or labels.max() >= k:
        return f"labels {labels!r}"
    if not np.array_equal(case.fit().labels_, labels):
        return "a second fit gave other labels"
    return _broken_promise(case, model)


def content_rows(X: Any) -> Any:
    return X if not hasattr(X, "toarray") else np.empty(X.shape[0])


def _broken_promise(case: Case, model: Any) -> str | None:
    known, result = case.constraints, getattr(model, "result_", None)
    gap = getattr(result, "gap", None)
    holds = known is None or not known.certain.n_violated(model.labels_)
    if gap is not None and holds and not -1e-6 <= gap <= 1:
        return f"the bound is above the cut: gap {gap}"
    if known is None:
        return None
    is_soft = case.settings.get("violations") is not None
    promised = case.settings.get("hard", case.method in HARD and not is_soft)
    if promised and known.certain.n_violated(model.labels_):
        return f"{known.certain.n_violated(model.labels_)} certain constraints are violated"
    return None


# Running -----------------------------------------------------------------------------------


def smaller(case: Case) -> Case:
    """Return a smaller case that fails as well: fewer samples, no constraints, plain settings."""
    for simpler in _simpler(case):
        if failure(simpler) is not None:
            return smaller(simpler)
    return case


def _simpler(case: Case) -> Any:
    n, known = len(content_rows(case.X)), case.constraints
    if case.settings.get("affinity") != "precomputed" and isinstance(case.X, np.ndarray) and n > 2:
        for kept in (np.arange(n // 2), np.arange(n // 2, n), np.arange(n - 1)):
            if len(kept) >= max(2, case.settings["n_clusters"] or 2):
                part = None if known is None else known.restrict(kept)
                yield replace(case, X=case.X[kept], constraints=part)
    if known is not None:
        yield replace(case, constraints=None)
        if known.labels is not None:
            yield replace(case, constraints=Constraints.from_table(n, known.table))
    for name in set(case.settings) - {"n_clusters", "random_state", "affinity"}:
        left = {key: value for key, value in case.settings.items() if key != name}
        yield replace(case, settings=left)


def run(seeds: Any, *, seconds: float = np.inf, keys: tuple[str, ...] = KEYS) -> list[str]:
    """Try cases; return what failed, and print a summary."""
    found, outcomes, until = [], Counter(), time.monotonic() + seconds
    try:
        for seed in seeds:
            if time.monotonic() > until:
                break
            case = drawn(seed, keys)
            wrong = failure(case)
            outcomes["failed" if wrong else "as promised"] += 1
            if wrong:
                least = smaller(case)
                found.append(f"{wrong}\n{least}\n  {failure(least)}")
                print(f"FAILED {found[-1]}", flush=True)
    finally:  # also after Ctrl-C
        print(f"{sum(outcomes.values())} cases: {dict(outcomes)}", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="first seed; drawn if missing")
    parser.add_argument("--case", type=int, help="repeat one case")
    parser.add_argument("--methods", nargs="*", default=KEYS)
    given = parser.parse_args()
    keys = tuple(given.methods)
    if given.case is not None:
        return bool(run([given.case], keys=keys))
    first = int(time.time()) % 10**6 * 1000 if given.seed is None else given.seed
    print(f"first seed {first}", flush=True)
    return bool(run(count(first), seconds=given.seconds, keys=keys))


if __name__ == "__main__":
    sys.exit(main())
