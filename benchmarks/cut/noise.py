"""Wrong answers among the pairs: hard mode, soft mode, and every penalty of the path.

Run: python benchmarks/cut/noise.py [--shared folder] [--draws 5] [--csv file]

n / 2 random pairs (n / 4 from 1,000 samples on), of which a share eta is flipped. Small sets have
several draws, the two large ones a single draw. Means are over sets (each the mean of its draws);
the standard error is that of the draws.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from common import compile_kernels, parser, pin, require_folder, show, timed, with_shared
from scipy.sparse import csr_array, load_npz

from linkwise import Constraints
from linkwise.exceptions import ConflictError
from linkwise.methods.cut import ConstrainedCut
from linkwise.metrics import adjusted_rand

SETS = {"iris": True, "wine": True, "breast_cancer": True, "moons2000h": False, "digits": False}
SHARES = (0.0, 0.1, 0.2)
STRENGTHS = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class Draw(NamedTuple):
    """What one draw of pairs gave."""

    path: tuple[float, ...]  # adjusted Rand index at every strength
    hard: float  # nan if it raised an error
    auto: float
    chosen: float  # the strength that "auto" took
    one: float  # at strength=1
    precision: float  # of the suspects at strength 1
    recall: float
    auto_precision: float
    auto_recall: float
    noise: float  # estimated share of wrong answers
    seconds: float  # of "auto"


def flipped_pairs(y, eta, seed):
    """Return random pairs with wrong answers among them, and the set of the wrong ones."""
    n = y.size
    known = Constraints.sample(y, n // 2 if n < 1000 else n // 4, random_state=seed)
    pairs, is_must_link = known.table.pairs, known.table.is_must_link
    rng = np.random.RandomState([seed, 1])
    wrong = rng.permutation(len(pairs))[: round(eta * len(pairs))]
    is_must_link[wrong] ^= True
    answers = Constraints(n, must_link=pairs[is_must_link], cannot_link=pairs[~is_must_link])
    return answers, {tuple(sorted(pair)) for pair in pairs[wrong].tolist()}


def found_among(suspects, wrong):
    """Return precision and recall of suspects; nan where they mean nothing."""
    named = {tuple(sorted(suspect.samples)) for suspect in suspects}
    right = len(named & wrong)
    return right / len(named) if named else np.nan, right / len(wrong) if wrong else np.nan


def run_draw(W, y, eta, seed):
    known, wrong = flipped_pairs(y, eta, seed)
    k = np.unique(y).size

    def fit(**more):
        model = ConstrainedCut(k, affinity="precomputed", random_state=seed, **more)
        return model.fit(W, constraints=known).result_

    try:
        hard = adjusted_rand(y, fit().labels)
    except ConflictError:
        hard = np.nan
    one = fit(constraints_mode="soft", strength=1.0)
    auto, seconds = timed(lambda: fit(constraints_mode="soft"))
    on_path = {point.strength: adjusted_rand(y, point.labels) for point in one.path}
    return Draw(
        tuple(on_path[strength] for strength in STRENGTHS),
        hard,
        adjusted_rand(y, auto.labels),
        auto.strength,
        adjusted_rand(y, one.labels),
        *found_among(one.suspects, wrong),
        *found_among(auto.suspects, wrong),
        one.noise,
        seconds,
    )


def mean(values):
    known = [value for value in values if np.isfinite(value)]
    return np.mean(known) if known else np.nan


def number(value, digits=3):
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def set_row(name, eta, draws):
    chosen = [f"{draw.chosen:g}" for draw in draws]
    return [
        name,
        f"{eta:.0%}",
        len(draws),
        *(number(mean(column)) for column in zip(*(draw.path for draw in draws), strict=True)),
        number(mean([draw.hard for draw in draws])),
        number(mean([draw.auto for draw in draws])),
        " ".join(chosen),
        f"{number(mean([d.precision for d in draws]), 2)}/"
        f"{number(mean([d.recall for d in draws]), 2)}",
        f"{number(mean([d.auto_precision for d in draws]), 2)}/"
        f"{number(mean([d.auto_recall for d in draws]), 2)}",
        f"{mean([draw.noise for draw in draws]):.3f}",
        f"{mean([draw.seconds for draw in draws]):.1f}",
    ]


def summary_row(eta, by_set):
    """Return means over sets and the standard errors that the draws leave them."""

    def shown(get):
        values = [np.array([get(draw) for draw in draws]) for draws in by_set]
        values = [v[np.isfinite(v)] for v in values]
        centre = np.mean([v.mean() for v in values if v.size])
        error = np.sqrt(sum(v.var(ddof=1) / v.size for v in values if v.size > 1)) / len(values)
        return f"{centre:.3f} ± {error:.3f}"

    strengths = [shown(lambda draw, at=at: draw.path[at]) for at in range(len(STRENGTHS))]
    others = [shown(lambda draw, name=name: getattr(draw, name)) for name in ("hard", "auto")]
    gap = shown(lambda draw: draw.auto - draw.one)
    failed = sum(not np.isfinite(draw.hard) for draws in by_set for draw in draws)
    return [f"{eta:.0%}", *strengths, *others, gap, failed]


def main():
    options = with_shared(parser(__doc__))
    options.add_argument("--draws", type=int, default=5, help="of each small set")
    options.add_argument("--large-draws", type=int, default=1, help="of each large set")
    options.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    given = options.parse_args()
    folder = require_folder(given.shared, "golden") / "graphs"
    pin()
    compile_kernels(soft=True)
    rows, summary = [], []
    for eta in SHARES:
        by_set = []
        for name in given.sets:
            W = csr_array(load_npz(folder / f"{name}_W.npz"))
            y = np.load(folder / f"{name}_data.npz")["y"]
            n_draws = given.draws if SETS[name] else given.large_draws
            by_set.append([run_draw(W, y, eta, seed) for seed in range(n_draws)])
            rows.append(set_row(name, eta, by_set[-1]))
            print(*rows[-1], file=sys.stderr, flush=True)
        summary.append(summary_row(eta, by_set))
    strengths = [f"t = {t:g}" for t in STRENGTHS]
    header = ["set", "eta", "draws", *strengths, "hard", "auto", "t of auto", "suspects at t = 1"]
    header += ["suspects of auto", "estimated noise", "CPU s of auto"]
    show("Adjusted Rand index; precision/recall of suspects", header, rows, given.csv)
    header = ["eta", *strengths, "hard", "auto", "auto - (t = 1)", "errors of hard"]
    show(f"Means of {len(given.sets)} sets", header, summary)


if __name__ == "__main__":
    main()
