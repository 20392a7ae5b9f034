"""COSC against the recorded answers of its authors' program, of 1-spectral clustering and KwaySSSC.

Run: python benchmarks/cosc/recorded.py [--shared folder] [--seeds 0 1 2] [--bare] [--csv file]

All violations are counted and all cuts computed afresh. The CPU seconds of the program are those
recorded for its default mode, and for its fast or middle mode where the default was not run. Ours
are the mean over the seeds, one thread, compiled before.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "cut"))
from common import parser, pin, require_folder, show, timed, with_shared
from golden import natural, read_case

from linkwise import metrics
from linkwise.methods.cosc import cosc

ABOVE = 1e-6  # relative: more than this over a reference is worse


def read_records(folder):
    """Return what each program recorded, by case."""
    found = defaultdict(list)
    for program in ("cosc", "sssc", "onespec"):
        for path in sorted(folder.glob(f"{program}__*.json")):
            stored = json.loads(path.read_text())
            key = stored["dataset"], stored.get("constraints", "none"), stored["k"]
            found[key].append((program, stored.get("mode", ""), stored))

    def by_size(item):
        (data, name, k), _ = item
        return k, natural(f"{data} {name}")

    return dict(sorted(found.items(), key=by_size))


def recount(W, known, stored):
    labels = np.array(stored["labels"])
    return metrics.ncut(W, labels), known.n_violated(labels)


def slowest_mode(records):
    """Return the recorded seconds of COSC: default mode first, then middle, then fast."""
    modes = {mode: stored["seconds_cpu"] for program, mode, stored in records if program == "cosc"}
    for mode in ("default", "mid", "fast"):
        if mode in modes:
            return mode, modes[mode]
    return "-", None


class Tally:
    """Counts over all cases."""

    def __init__(self):
        self.runs = self.above = self.far_above = self.lower = self.violated = 0
        self.seconds = defaultdict(lambda: [0.0, 0.0, 0])

    def compare(self, cuts, feasible):
        """Count cuts above and below the lowest feasible reference."""
        if np.isfinite(feasible):
            self.runs += len(cuts)
            self.above += int((cuts > feasible * (1 + ABOVE)).sum())
            self.far_above += int((cuts > feasible * 1.01).sum())
            self.lower += int((cuts < feasible * (1 - ABOVE)).sum())

    def clock(self, key, ours, theirs):
        """Add seconds, where there are recorded ones."""
        if theirs is not None:
            total = self.seconds[key]
            total[0] += ours
            total[1] += theirs
            total[2] += 1

    def print_summary(self, n_cases, n_seeds):
        """Print the sums."""
        print(f"\n{n_cases} cases, {n_seeds} seeds, {self.violated} violated constraints.")
        print(
            f"Of {self.runs} runs with a feasible reference, {self.above} above the lowest one by"
        )
        print(f"more than {ABOVE:g}, {self.far_above} by more than 1 %, {self.lower} below it.\n")
        for (is_two, mode), (ours, theirs, n) in sorted(self.seconds.items(), reverse=True):
            clusters = "two clusters" if is_two else "more clusters"
            print(f"{clusters}, recorded in {mode} mode, {n} cases: {ours:.1f} CPU s", end=" ")
            print(f"against {theirs:.1f}, {theirs / ours:.1f} times")


def run(W, known, k, options):
    """Return the results of the seeds, their cuts, and the mean CPU seconds."""
    settings = {"refine": not options.bare}
    timings = [
        timed(partial(cosc, W, known, k, random_state=seed, **settings)) for seed in options.seeds
    ]
    results = [result for result, _ in timings]
    cuts = np.array([metrics.ncut(W, result.labels) for result in results])
    return results, cuts, float(np.mean([seconds for _, seconds in timings]))


def main():
    options = with_shared(parser(__doc__))
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    options.add_argument("--bare", action="store_true", help="refine=False: the paper's method")
    given = options.parse_args()
    folder = require_folder(given.shared, "golden")
    pin()
    for k in (2, 3):
        cosc(*read_case(folder, "iris2", "p50_s0"), k, random_state=0)  # compiles
    rows, tally = [], Tally()
    for (data, name, k), records in read_records(folder / "results").items():
        W, known = read_case(folder, data, name)
        results, cuts, seconds = run(W, known, k, given)
        violated = sum(known.n_violated(result.labels) for result in results)
        counted = [(program, mode, *recount(W, known, stored)) for program, mode, stored in records]
        mode, theirs = slowest_mode(records)
        tally.violated += violated
        tally.compare(cuts, min((cut for *_, cut, n in counted if n == 0), default=np.inf))
        tally.clock((k == 2, mode), seconds, theirs)
        shown = ", ".join(f"{p} {m} {cut:.6f} ({n})" for p, m, cut, n in counted).replace("  ", " ")
        rows.append(
            [
                f"{data} {name}",
                k,
                f"{cuts.min():.6f}" + (f" to {cuts.max():.6f}" if np.ptp(cuts) > 1e-9 else ""),
                violated,
                shown,
                f"{seconds:.2f}",
                "-" if theirs is None else f"{theirs:.1f} ({mode})",
            ]
        )
        print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
    header = ["case", "k", "NCut", "violated", "recorded: NCut (violated)", "CPU s", "recorded"]
    show("COSC and the recorded answers", header, rows, given.csv)
    tally.print_summary(len(rows), len(given.seeds))


if __name__ == "__main__":
    main()
