"""The constrained cut against the recorded answers of the programs of COSC and KwaySSSC.

Run: python benchmarks/cut/golden.py [--shared folder] [--seeds 0 1 2] [--csv file]

A reference counts where it satisfies every constraint, by our own recount; its NCut is recomputed
as well. The CPU seconds of COSC are those recorded for its mode with the lowest cut, the default
mode where modes are equal; ours are the mean over the seeds.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from common import compile_kernels, parser, pin, require_folder, show, timed, with_shared
from scipy.sparse import csr_array, load_npz

from linkwise import Constraints, metrics
from linkwise.methods.cut import ConstrainedCut

ABOVE = 1e-9  # relative: more than this over a feasible reference is worse
EQUAL = 1e-7  # relative: modes of COSC within this are equal


class Reference(NamedTuple):
    """What an original program answered."""

    program: str
    mode: str
    labels: np.ndarray
    seconds: float


class Scored(NamedTuple):
    """A reference, counted again."""

    reference: Reference
    ncut: float
    n_violated: int

    def __str__(self):
        return f"{self.ncut:.6f} ({self.n_violated})"


def read_references(folder):
    """Return the references of each case (data, constraint set, k)."""
    found = defaultdict(list)
    for program in ("cosc", "sssc"):
        for path in sorted(folder.glob(f"{program}__*.json")):
            stored = json.loads(path.read_text())
            key = (stored["dataset"], stored["constraints"], stored["k"])
            found[key].append(
                Reference(
                    program,
                    stored.get("mode", ""),
                    np.array(stored["labels"]),
                    stored["seconds_cpu"],
                )
            )
    return dict(sorted(found.items(), key=lambda item: (item[0][2], item[0])))


def read_case(folder, data, name):
    W = csr_array(load_npz(folder / "graphs" / f"{data}_W.npz"))
    if name == "none":
        return W, Constraints(W.shape[0])
    pairs = np.load(folder / "constraints" / f"{data}_{name}.npz")
    return W, Constraints(
        W.shape[0], must_link=pairs["must_link"], cannot_link=pairs["cannot_link"]
    )


def lowest(scored):
    """Return the mode of COSC with the lowest cut, its default where equal; None without."""
    ours = [s for s in scored if s.reference.program == "cosc"]
    if not ours:
        return None
    cut = min(s.ncut for s in ours)
    best = [s for s in ours if s.ncut <= cut * (1 + EQUAL)]
    return min(best, key=lambda s: s.reference.mode != "default")


def run_case(W, known, k, seeds):
    """Return NCut and violations of each seed, and the mean CPU seconds."""
    cuts, n_violated, seconds = [], 0, []
    for seed in seeds:
        model = ConstrainedCut(k, affinity="precomputed", random_state=seed)
        _, spent = timed(lambda model=model: model.fit(W, constraints=known))
        cuts.append(metrics.ncut(W, model.labels_))
        n_violated += known.n_violated(model.labels_)
        seconds.append(spent)
    return np.array(cuts), n_violated, float(np.mean(seconds))


def natural(name):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def main():
    options = with_shared(parser(__doc__))
    options.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    given = options.parse_args()
    folder = require_folder(given.shared, "golden")
    pin()
    compile_kernels()
    rows, ours, theirs = [], [], []
    n_above = n_equal = n_lower = n_violated = 0
    for (data, name, k), references in read_references(folder / "results").items():
        W, known = read_case(folder, data, name)
        scored = [
            Scored(r, metrics.ncut(W, r.labels), known.n_violated(r.labels)) for r in references
        ]
        cuts, violated, seconds = run_case(W, known, k, given.seeds)
        feasible = min((s.ncut for s in scored if s.n_violated == 0), default=np.inf)
        cosc = lowest(scored)
        kway = next((s for s in scored if s.reference.program == "sssc"), None)
        above = int((cuts > feasible * (1 + ABOVE)).sum())
        n_above += above
        n_violated += violated
        if np.isfinite(feasible):
            n_lower += int((cuts < feasible * (1 - ABOVE)).sum())
            n_equal += int((np.abs(cuts - feasible) <= feasible * ABOVE).sum())
        if cosc is not None:
            ours.append(seconds)
            theirs.append(cosc.reference.seconds)
        rows.append(
            [
                f"{data} {name}",
                k,
                *(f"{cut:.6f}" for cut in cuts),
                violated,
                "-" if cosc is None else f"{cosc} {cosc.reference.mode}",
                "-" if kway is None else kway,
                "ABOVE" if above else "",
                f"{seconds:.2f}",
                "-" if cosc is None else f"{cosc.reference.seconds:.1f}",
            ]
        )
        print(*rows[-1], file=sys.stderr, flush=True)
    header = ["case", "k", *(f"NCut, seed {seed}" for seed in given.seeds)]
    header += ["violated", "COSC (violated)", "KwaySSSC (violated)", "", "CPU s", "COSC CPU s"]
    rows.sort(key=lambda row: (row[1], natural(row[0])))
    show("Recorded answers of the original programs", header, rows, given.csv)
    n_feasible = n_above + n_equal + n_lower
    print(f"\n{len(rows)} cases, {len(given.seeds)} seeds: {n_violated} violated constraints;")
    print(f"of {n_feasible} runs with a feasible reference {n_above} above, {n_equal} equal, ")
    print(f"{n_lower} lower. CPU seconds of {len(ours)} cases: {sum(ours):.1f} against ")
    print(f"{sum(theirs):.1f} of COSC, {sum(theirs) / sum(ours):.1f} times.")


if __name__ == "__main__":
    main()
