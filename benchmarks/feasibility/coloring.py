"""Colouring cannot-links: random pairs, planted colourings and obstructions, linear costs.

One command prints four tables in Markdown (CPU seconds):

    python benchmarks/feasibility/coloring.py [directory of the COL1 sets]
"""

from __future__ import annotations

import sys
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.cluster import KMeans

from linkwise import ConflictError, Constraints
from linkwise.constraints.coloring import (
    assign,
    find_certificate,
    find_coloring,
    graph_of,
    guided_coloring,
    kernels,
    peel,
)
from linkwise.constraints.feasible import feasible_groups


def timed(call):
    start = process_time()
    answer = call()
    return answer, process_time() - start


def table(title: str, header: list[str], rows: list[list[object]]) -> None:
    print(f"\n## {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")


def result(found, seconds: float) -> str:
    return f"{'ok' if found.n_left == 0 else f'left {found.n_left}'}, {seconds:.2f} s"


def planted(rng, n: int, k: int, degree: float):
    """Return random pairs across a hidden partition, and the partition."""
    y = rng.randint(k, size=n)
    pairs = np.sort(rng.randint(n, size=(3 * int(n * degree), 2)), axis=1)
    pairs = pairs[y[pairs[:, 0]] != y[pairs[:, 1]]][: int(n * degree / 2)]
    return np.unique(pairs, axis=0), y


def random_pairs() -> None:
    rows = []
    for k in (3, 10, 20):
        for per_sample in (0.1, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0):
            rng = np.random.RandomState(0)
            y = rng.randint(k, size=10_000)
            known = Constraints.sample(y, int(per_sample * 10_000), random_state=1)
            groups = feasible_groups(known, k)
            cost = rng.uniform(size=(groups.n_groups, k))
            found, seconds = timed(lambda g=groups, c=cost, r=rng: guided_coloring(g.graph, c, r))
            _, checked = timed(lambda c=known, k=k: c.check(k))
            degree = groups.graph.indices.size / groups.n_groups
            core = int(peel(groups.graph, k).core.sum())
            row = [f"{k}, {per_sample} n", groups.n_groups, f"{degree:.2f}", core, found.n_left]
            rows.append([*row, f"{seconds:.3f}", f"{checked:.3f}"])
    header = ["k, pairs", "groups", "mean degree", "core", "left", "s", "check s"]
    table("Random pairs of true clusters, 10,000 samples, random costs", header, rows)


def planted_colorings() -> None:
    rows = []
    for k, n, degree in (
        (3, 1_000, 4.0), (3, 1_000, 4.7), (3, 1_000, 6.0), (3, 10_000, 4.0), (3, 10_000, 4.7),
        (3, 10_000, 6.0), (3, 10_000, 20.0), (5, 1_000, 14.0), (5, 10_000, 11.0),
        (5, 10_000, 14.0), (5, 10_000, 30.0), (10, 1_000, 39.0), (10, 1_000, 60.0),
        (10, 10_000, 30.0), (10, 10_000, 60.0),
    ):  # fmt: skip
        rng = np.random.RandomState(0)
        pairs, y = planted(rng, n, k, degree)
        graph = graph_of(pairs, n)
        cost = rng.uniform(size=(n, k))
        hint = np.where(rng.uniform(size=n) < 0.7, y, rng.randint(k, size=n))
        informed = cost.copy()
        informed[np.arange(n), hint] -= 1.0
        _, once = timed(lambda g=graph, c=cost: kernels.dsatur(*g, c, np.zeros(len(c), np.int64)))
        rows.append(
            [f"{k}, {n}, {degree}"]
            + [result(*timed(lambda g=graph, c=c, r=rng: guided_coloring(g, c, r)))
               for c in (cost, informed)]
            + [result(*timed(lambda g=graph, k=k, r=rng: find_coloring(g, k, r)))]
            + [f"{1000 * once:.1f}"]
        )  # fmt: skip
    header = ["k, n, degree", "guided, random cost", "guided, 70 % informative", "full search"]
    table("Planted colourings", [*header, "one DSATUR, ms"], rows)


def obstructions() -> None:
    wheel = [(i, (i + 1) % 7) for i in range(7)] + [(i, 7) for i in range(7)]
    groetzsch = [(i, (i + 1) % 5) for i in range(5)]
    for i in range(5):
        groetzsch += [(5 + i, (i + 1) % 5), (5 + i, (i - 1) % 5), (5 + i, 10)]
    clique = {size: list(combinations(range(size), 2)) for size in (4, 6, 11)}
    rows = []
    for name, edges, k, n, n_pairs in (
        ("K4", clique[4], 3, 1_000, 600), ("K4", clique[4], 3, 1_000, 2_000),
        ("K4", clique[4], 3, 40_000, 100_000), ("K6", clique[6], 5, 2_000, 8_000),
        ("K6", clique[6], 5, 20_000, 100_000), ("K11", clique[11], 10, 2_000, 20_000),
        ("K11", clique[11], 10, 10_000, 100_000), ("W7", wheel, 3, 1_000, 600),
        ("W7", wheel, 3, 1_000, 2_300), ("W7", wheel, 3, 40_000, 100_000),
        ("Groetzsch", groetzsch, 3, 1_000, 600), ("Groetzsch", groetzsch, 3, 400, 600),
        ("Groetzsch", groetzsch, 3, 100_000, 100_000),
        ("Groetzsch", groetzsch, 3, 40_000, 100_000),
        ("Groetzsch", groetzsch, 3, 10_000, 100_000),
    ):  # fmt: skip
        rng = np.random.RandomState(0)
        pairs, _ = planted(rng, n, k, 2 * n_pairs / n)
        members = rng.permutation(n)[: max(map(max, edges)) + 1]
        both = np.sort(np.concatenate((pairs, members[np.array(edges)])), axis=1)
        graph = graph_of(np.unique(both, axis=0), n)
        found, seconds = timed(lambda g=graph, k=k, r=rng: find_certificate(g, k, r))
        kind = "undecided" if found is None else f"{found.kind}, {len(found.edges)} pairs"
        core = int(peel(graph, k).core.sum())
        rows.append([name, k, n, len(both), core, kind, f"{seconds:.3f}"])
    header = ["planted", "k", "groups", "cannot-links", "core", "found", "s"]
    table("Planted obstructions", header, rows)


def linear_costs(directory: Path) -> None:
    rows = []
    for path in sorted(directory.glob("*.npz")):
        data = np.load(path)
        k = np.unique(data["y"]).size
        if k < 3:
            continue
        X = (data["X"] - data["X"].mean(axis=0)) / np.maximum(data["X"].std(axis=0), 1e-12)
        distance = KMeans(k, n_init=20, random_state=0).fit(X).transform(X) ** 2
        for share in (5, 10, 15, 20):
            known = Constraints(len(X), data[f"must_{share}"], data[f"cannot_{share}"])
            groups = feasible_groups(known, k)
            cost = np.zeros((groups.n_groups, k))
            np.add.at(cost, groups.component, distance)
            rng = np.random.RandomState(0)
            greedy = guided_coloring(groups.graph, cost, rng).colors
            descended = greedy.copy()
            kernels.kempe_descent(*groups.graph, cost, descended, 100, False)
            best, seconds = timed(lambda g=groups.graph, c=cost, r=rng: assign(g, c, r))
            costs = [cost[np.arange(len(c)), c].sum() for c in (greedy, descended, best.colors)]
            more = [f"{100 * (p / costs[2] - 1):+.2f} %" for p in costs[:2]]
            rows.append(
                [f"{path.stem} {share} %, k={k}", *more, f"{costs[2]:.2f}", f"{seconds:.3f}"]
            )
    header = ["data, level", "guided", "+ Kempe descent", "assign (cost)", "s"]
    table("Linear costs of k-means centres; what is paid above assign", header, rows)


def compile_everything() -> None:
    rng = np.random.RandomState(0)
    pairs, _ = planted(rng, 200, 3, 6.0)
    find_coloring(graph_of(pairs, 200), 3, rng)
    find_certificate(graph_of(pairs, 200), 3, rng)
    assign(graph_of(pairs, 200), rng.uniform(size=(200, 4)), rng)
    with suppress(ConflictError):
        Constraints(4, cannot_link=list(combinations(range(4), 2))).check(3)


if __name__ == "__main__":
    compile_everything()
    random_pairs()
    planted_colorings()
    obstructions()
    if len(sys.argv) > 1:
        linear_costs(Path(sys.argv[1]))
