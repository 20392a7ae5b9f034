"""`Auto` with no, few and many pairs on generated and real sets, in a tuning and a checking half.

Run: python benchmarks/auto/battery.py [--half t c] [--pairs 0 5 n/10] [--each 2] [--draw 0]

35 families of generated sets with random parameters, and 15 real ones, standardised. The constants
of `Auto` were set on the tuning half (t). The checking half (c) has other families, other draws of
eight tuning families, and other real sets; it was looked at as well, so neither is blind. The sets
are not part of this repository: --shared is the folder with research/auto/sets.py and data/.

k is given; pairs are uniform and labelled by the classes; more pairs contain fewer. All amounts are
fitted to the same `Prepared` data, as a user does, so the CPU seconds of 0 pairs include the graph
and the candidates without constraints, and the others do not; with --cold every fit begins anew.
Rows are written to out/ as they come; --show prints tables of rows written before.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from common import OUT, SHARED, number, pin, show
from sklearn.cluster import KMeans

from linkwise import Auto, Constraints, NCut, Prepared
from linkwise.metrics import adjusted_rand

AMOUNTS = ("0", "1", "2", "5", "10", "20", "n/10")
HALVES = {"t": "tuning half", "c": "checking half"}
WORSE = 0.02  # of ARI, by which an answer counts as worse
FEW = 5  # free samples, below which their score means nothing


def load_sets(shared):
    """Return the module that generates and reads the sets."""
    path = Path(shared) / "research" / "auto" / "sets.py"
    if not path.is_file():
        sys.exit(f"There is no {path}. Give the folder that has it with --shared.")
    os.environ.setdefault("LINKWISE_DATA", str(Path(shared) / "data"))
    spec = importlib.util.spec_from_file_location("sets", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw_pairs(y, m, seed):
    """Return `m` pairs of samples that have a class; the first of a larger draw are the same."""
    rng = np.random.RandomState(seed)
    known = np.flatnonzero(y >= 0)
    drawn = {}
    while len(drawn) < m:
        i, j = sorted(rng.choice(known, 2, replace=False))
        drawn.setdefault((i, j), y[i] == y[j])
    pairs = np.array(list(drawn), dtype=int).reshape(-1, 2)
    same = np.array(list(drawn.values()), dtype=bool)
    return Constraints(y.size, must_link=pairs[same], cannot_link=pairs[~same])


def n_pairs(amount, n):
    """Return the number of pairs: of "5" 5, of "n/10" a tenth of the samples."""
    return n // int(amount[2:] or 1) if amount.startswith("n") else int(amount)


def scores(y, labels, known):
    """Return the ARI over samples with a class, and over those of them that no pair names."""
    scored = y >= 0
    free = scored & ~known.constrained
    on_free = adjusted_rand(y[free], labels[free]) if free.sum() >= FEW else float("nan")
    return adjusted_rand(y[scored], labels[scored]), on_free


def measure(name, X, y, seed, asked):
    """Yield a row for each number of pairs on one set."""
    k, scored = int(y.max()) + 1, y >= 0
    simple = {
        "k_means": KMeans(k, n_init=10, random_state=0).fit_predict(X),
        "ncut": NCut(k, random_state=0).fit(X).labels_,
    }
    of_set = {"set": name, "n": len(X), "d": X.shape[1], "k": k}
    of_set |= {key: adjusted_rand(y[scored], labels[scored]) for key, labels in simple.items()}
    data = Prepared(X)
    for amount in asked.pairs:
        known = draw_pairs(y, n_pairs(amount, len(X)), seed)
        start = time.process_time()
        model = Auto(k, random_state=asked.seed).fit(
            Prepared(X) if asked.cold else data, constraints=known
        )
        seconds = time.process_time() - start
        ari, free = scores(y, model.labels_, known)
        report = model.report_
        yield of_set | {
            "amount": amount,
            "ari": ari,
            "free": free,
            "cpu": seconds,
            "kind": max(report.kinds, key=report.kinds.get),
            "misfit": report.misfit,
            "scaling": report.scaling,
            "centre": report.centre,
        }


def run_half(half, asked):
    """Measure one half, writing each row as it comes; return the rows."""
    path = OUT / f"battery_{half}_{asked.tag}.jsonl"
    rows = []
    with path.open("w", encoding="utf-8") as file:
        for at, (name, X, y) in enumerate(load_sets(asked.shared).sets(half, asked.each)):
            if at % asked.every:
                continue
            for row in measure(name, X, y, 7 * at + 1 + 100_003 * asked.draw, asked):
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    return rows


def summary(rows):
    """Yield a table row for each number of pairs."""
    of_amount = defaultdict(list)
    own = {row["set"]: row["ari"] for row in rows if row["amount"] == "0"}
    for row in rows:
        of_amount[row["amount"]].append(row)
    for amount, found in of_amount.items():
        ari = np.array([row["ari"] for row in found])
        simple = np.array([max(row["k_means"], row["ncut"]) for row in found])
        change = ari - [own.get(row["set"], np.nan) for row in found]
        yield [
            amount,
            len(found),
            number(ari.mean()),
            number(np.nanmean([row["free"] for row in found])),
            share(change),
            number(change.min(), 2),
            share(ari - simple),
            number(simple.mean()),
            number(np.mean([row["cpu"] for row in found]), 2),
        ]


def share(difference):
    """Return how many are clearly negative."""
    if not np.isfinite(difference).all():
        return "-"
    return f"{100 * np.mean(difference < -WORSE):.0f} %"


# --- generated sets that are no part of the battery


def run_generated(make, description, *, n_sets):
    """Read options, and print the mean ARI on sets that `make` returns for their seeds."""
    options = argparse.ArgumentParser(description=description.splitlines()[0])
    options.add_argument("--first", type=int, default=0, help="seed of the first set")
    options.add_argument("--sets", type=int, default=n_sets)
    options.add_argument("--pairs", nargs="*", default=["0", "20", "n/10"])
    asked = options.parse_args()
    pin()
    seeds = range(asked.first, asked.first + asked.sets)
    rows = np.array([measure_generated(*make(seed), seed, asked.pairs) for seed in seeds])
    head = ["k-means", "NCut", *(f"Auto, {amount} pairs" for amount in asked.pairs)]
    show(f"{asked.sets} sets", head, [[number(value) for value in rows.mean(axis=0)]])


def measure_generated(X, y, seed, amounts):
    """Return the ARI of k-means, of `NCut`, and of `Auto` with so many pairs."""
    k, data = int(y.max()) + 1, Prepared(X)
    found = [KMeans(k, n_init=10, random_state=0).fit_predict(X)]
    found.append(NCut(k, random_state=0).fit(data).labels_)
    for amount in amounts:
        known = draw_pairs(y, n_pairs(amount, y.size), seed)
        found.append(Auto(k, random_state=0).fit(data, constraints=known).labels_)
    return [adjusted_rand(y, labels) for labels in found]


HEAD = [
    *("pairs", "sets", "ARI", "ARI, free", "worse than own without pairs", "worst"),
    *("worse than the better of k-means and NCut", "the better of the two", "CPU s"),
]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--shared", type=Path, default=SHARED)
    options.add_argument("--half", nargs="*", choices=list(HALVES), default=list(HALVES))
    options.add_argument("--pairs", nargs="*", default=list(AMOUNTS), help="such as 5, n/10, n")
    options.add_argument("--each", type=int, default=2, help="sets of each generated family")
    options.add_argument("--every", type=int, default=1, help="only every so many sets")
    options.add_argument("--draw", type=int, default=0, help="which draw of pairs")
    options.add_argument("--seed", type=int, default=0, help="random_state of `Auto`")
    options.add_argument("--cold", action="store_true", help="no fit uses another's preparation")
    options.add_argument("--tag", default="now", help="part of the names of files in out/")
    options.add_argument("--show", nargs="*", type=Path, help="only print tables of these files")
    asked = options.parse_args()
    OUT.mkdir(exist_ok=True)
    pin()
    if asked.show:
        for path in asked.show:
            rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            show(path.stem, HEAD, summary(rows))
        return
    path = OUT / f"battery_{asked.tag}.md"
    path.unlink(missing_ok=True)
    for half in asked.half:
        show(f"{HALVES[half]}, draw {asked.draw}", HEAD, summary(run_half(half, asked)), path)


if __name__ == "__main__":
    main()
