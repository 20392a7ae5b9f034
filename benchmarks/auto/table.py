"""Every method on sixteen sets with n/20 to 2n random pairs: the table for `Auto`.

Run: python benchmarks/auto/table.py [--data folder] [--methods auto cut ncut] [--draws 5]

Standardised features, k given, uniform random pairs labelled by the true classes; all methods get
the same draws. ARI over all samples and over the free ones, which no pair names, where at least
five are left. A method that fails or takes too long gets the score of `ncut` there, which is
the answer without constraints; the share of such draws is shown. `cosc` and `cut`, which
take up to a minute, get two draws from 700 samples on, and one from 1,400 on. Rows are kept in out/
as they come: an interrupted run goes on, and methods can be added.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import DESIGN, OUT, SHARED, VALIDATION, load, number, pin, show

from linkwise import METHODS
from linkwise.evaluate import learning_curve

LEVELS = {"n/20": 0.05, "n/10": 0.1, "n/4": 0.25, "n/2": 0.5, "n": 1.0, "2n": 2.0}
GROUPS = {"design": DESIGN, "validation": VALIDATION}
SCORES = {"free samples": "free_adjusted_rand", "all samples": "adjusted_rand"}
FEW = 5  # free samples, below which their score means nothing
SLOW, SLOW_DRAWS = ("cosc", "cut"), {700: 2, 1400: 1}  # their draws, from so many samples on
WORSE = 0.02  # of ARI, by which a draw counts as worse than no constraints


def measure(asked):
    """Fit what is not in the files yet; return {(set, method, level, draw): row}."""
    found = {}
    for name in asked.sets:
        X, y = load(asked.data, name)
        amounts = {level: max(1, round(share * y.size)) for level, share in LEVELS.items()}
        level_of = {amount: level for level, amount in amounts.items()} | {0: "0"}
        for methods, draws in plans(asked, y.size):
            curves = learning_curve(
                {name: (X, y)},
                methods,
                [0, *amounts.values()] if asked.zero else list(amounts.values()),
                n_draws=draws,
                metrics=["adjusted_rand", "free_adjusted_rand", "violated_share"],
                path=OUT / f"table_{name}.jsonl",
                n_jobs=asked.jobs,
                time_limit=asked.limit,
                progress=False,
            )
            for row in curves.rows:
                key = name, row["method"], level_of[row["amount"]], row["draw"]
                found[key] = row | {"n_free": n_free(y, row, name)}
        print(name, "done", flush=True)
    return found


def plans(asked, n):
    """Yield methods and their number of draws: slow ones get fewer on large sets."""
    slow = [m for m in asked.methods if m in SLOW]
    fewest = min([asked.draws, *(draws for size, draws in SLOW_DRAWS.items() if n >= size)])
    yield [m for m in asked.methods if m not in slow], asked.draws
    if slow:
        yield slow, fewest


def n_free(y, row, name):
    from linkwise.evaluate import draw_constraints

    known = draw_constraints(y, row["amount"], data=name, repetition=row["draw"])
    return int((~known.constrained).sum())


def scored(found, key, score):
    """Return the score of a fit, or of no constraints where there is none; nan for few samples."""
    row = found.get(key)
    if row is None:  # fewer draws for slow methods
        return np.nan
    if score.startswith("free") and row["n_free"] < FEW:
        return np.nan
    if row["status"] not in {"ok", "slow"}:
        row = found[key[0], "ncut", *key[2:]]
    return row[score]


def set_mean(found, name, method, level, score, draws):
    values = [scored(found, (name, method, level, d), score) for d in range(draws)]
    values = [v for v in values if np.isfinite(v)]
    return np.mean(values) if values else np.nan


def group_rows(found, names, asked, score):
    """One row a method: the mean over the sets by level, and their mean."""
    for method in asked.methods:
        by_level = []
        for level in LEVELS:
            if score.startswith("free") and level == "2n":
                continue
            means = [set_mean(found, n, method, level, score, asked.draws) for n in names]
            by_level.append(np.nanmean(means))
        yield [method, *map(number, by_level), number(np.mean(by_level))]


def set_rows(found, names, asked, method):
    for name in names:
        free = [
            set_mean(found, name, method, level, "free_adjusted_rand", asked.draws)
            for level in LEVELS
            if level != "2n"
        ]
        rows = [r for key, r in found.items() if key[:2] == (name, method) and key[2] != "0"]
        yield [
            name,
            number(set_mean(found, name, "ncut", "n/20", "adjusted_rand", asked.draws)),
            *map(number, free),
            number(np.nanmean(free)),
            f"{100 * np.nanmean([r['violated_share'] for r in rows]):.1f} %",
            f"{np.nanmean([r['cpu_seconds'] for r in rows]):.2f}",
        ]


def worse_share(found, asked, method, names):
    """Share of draws whose free samples lose more than `WORSE` against no constraints."""
    differences = [
        scored(found, key, "free_adjusted_rand")
        - scored(found, (key[0], "ncut", *key[2:]), "free_adjusted_rand")
        for key in found
        if key[1] == method and key[0] in names and key[2] not in {"0", "2n"}
    ]
    differences = np.array(differences)[np.isfinite(differences)]
    return np.mean(differences < -WORSE), differences.min()


def summary(found, asked, path):
    levels = list(LEVELS)
    for group, members in GROUPS.items():
        names = [n for n in members if n in asked.sets]
        if not names:
            continue
        for title, score in SCORES.items():
            shown = levels[:-1] if score.startswith("free") else levels
            rows = list(group_rows(found, names, asked, score))
            show(f"{group} sets, ARI over {title}", ["method", *shown, "mean"], rows, path)
        if "auto" in asked.methods:
            head = ["set", "ncut", *(f"free {level}" for level in levels[:-1])]
            head += ["mean", "violated", "CPU s"]
            rows = list(set_rows(found, names, asked, "auto"))
            show(f"{group} sets, `auto` by set", head, rows, path)
    rows = []
    for method in asked.methods:
        cells = []
        for members in (DESIGN, VALIDATION):
            names = [n for n in members if n in asked.sets]
            share, worst = worse_share(found, asked, method, names) if names else (np.nan, np.nan)
            cells += [f"{100 * share:.0f} %", number(worst)]
        mine = [r for key, r in found.items() if key[1] == method and key[2] != "0"]
        failed = np.mean([r["status"] not in {"ok", "slow"} for r in mine])
        seconds = np.nanmean([r["cpu_seconds"] for r in mine])
        rows.append([method, *cells, f"{100 * failed:.0f} %", f"{seconds:.2f}"])
    head = ["method", "design: worse", "worst", "validation: worse", "worst", "failed", "CPU s"]
    show(f"Draws worse than no constraints by more than {WORSE} on free samples", head, rows, path)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=SHARED / "data")
    options.add_argument("--sets", nargs="*", default=[*DESIGN, *VALIDATION])
    options.add_argument("--methods", nargs="*", default=list(METHODS))
    options.add_argument("--draws", type=int, default=5)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--limit", type=float, default=60.0, help="seconds of one fit")
    options.add_argument("--zero", action="store_true", help="also without any pair")
    asked = options.parse_args()
    if "ncut" not in asked.methods:
        asked.methods.append("ncut")
    OUT.mkdir(exist_ok=True)
    pin()
    path = OUT / "table.md"
    path.unlink(missing_ok=True)
    summary(measure(asked), asked, path)


if __name__ == "__main__":
    main()
