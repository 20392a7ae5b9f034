"""`Linkage` on sets of many small clusters: with and without reviewed pairs, some of them wrong.

Run: python benchmarks/linkage/table.py [--sets zipf orl ...] [--seeds 5] [--levels 0 50 10 10w]
     python benchmarks/linkage/table.py --show

Levels are n/50, n/10, ... pairs, and "e" is eight; "w" after one means that 10 % of them are wrong,
"v" 5 %. FEBRL sets need files that `febrl.py` writes. A seed draws the generated data, the pairs
and the projection. Fits are added to a file of results, and fits that are in it are not repeated,
so that the table can be made in pieces; --show prints the medians over the seeds.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
from data import CHOSEN_ON, DESIGN, REPORT, load, reviewed_pairs
from scores import scores
from threadpoolctl import threadpool_limits

from linkwise import Linkage

WRONG = {"w": 0.1, "v": 0.05}
OUT = Path(__file__).parent / "out" / "table.jsonl"


def reviewed(X, y, level, seed):
    """Return the pairs of a level, and those of them that are wrong."""
    if level == "0":
        return None, set()
    share, part = WRONG.get(level[-1], 0.0), level.rstrip("wv")
    m = 8 if part == "e" else max(8, y.size // int(part))
    return reviewed_pairs(X, y, m, wrong=share, seed=seed)


def measure(X, y, level, seed):
    """Return the scores of one fit, CPU seconds, and the share of wrong pairs among suspects."""
    known, wrong = reviewed(X, y, level, seed)
    start = time.process_time()
    model = Linkage(random_state=seed).fit(X, constraints=known)
    spent = time.process_time() - start
    named = {s.samples for s in model.suspects_[: len(wrong)]}
    return {
        **scores(y, model.labels_),
        "cpu": spent,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "rate": model.error_rate_,
        "named": len(named & wrong) / len(wrong) if wrong else None,
    }


def results(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(asked):
    done = {(row["set"], row["level"], row["seed"]) for row in results(asked.out)}
    asked.out.parent.mkdir(exist_ok=True)
    for name in asked.sets:
        for seed in range(asked.seeds):
            levels = [level for level in asked.levels if (name, level, seed) not in done]
            X, y = load(name, seed) if levels else (None, None)
            for level in levels:
                row = {"set": name, "level": level, "seed": seed, **measure(X, y, level, seed)}
                with asked.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")


def show(path):
    rows = results(path)
    cells = {}
    for row in rows:
        cells.setdefault((row["set"], row["level"]), []).append(row)
    head = ("set", "half", "pairs", "draws", "ARI", "lowest", "F1", "B3", "k", "CPU s", "MB")
    print("| " + " | ".join((*head, "error rate", "wrong ones named")) + " |")
    print("|" + "---|" * (len(head) + 2))
    for (name, level), found in sorted(cells.items()):
        half = "chosen on" if name in CHOSEN_ON else "checked"
        middle = {key: median(found, key) for key in found[0] if key not in ("set", "level")}
        lowest = min(row["ari"] for row in found)
        print(
            f"| {name} | {half} | {level} | {len(found)} | {middle['ari']:.3f} | {lowest:.3f} "
            f"| {middle['f1']:.3f} | {middle['b3']:.3f} | {middle['k']:.0f} | {middle['cpu']:.1f} "
            f"| {middle['mb']:.0f} | {middle['rate']:.3f} | {middle['named']:.2f} |"
        )
    show_worse(rows)


def median(rows, key):
    values = [row[key] for row in rows if row[key] is not None]
    return float(np.median(values)) if values else np.nan


def show_worse(rows):
    """Print how many draws with pairs are more than .02 below the one without."""
    alone = {(row["set"], row["seed"]): row["ari"] for row in rows if row["level"] == "0"}
    print()
    for half, sets in (
        ("chosen on", set(CHOSEN_ON)),
        ("checked", {*DESIGN, *REPORT} - {*CHOSEN_ON}),
    ):
        for what, marks in (("right", ""), ("some wrong", "wv")):
            lost = [
                alone[row["set"], row["seed"]] - row["ari"]
                for row in rows
                if (row["set"], row["seed"]) in alone and row["set"] in sets
                if row["level"] != "0" and (row["level"][-1] in "wv") == bool(marks)
            ]
            worse = sum(loss > 0.02 for loss in lost)
            print(f"{half}, pairs {what}: {worse} of {len(lost)} draws more than .02 worse")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=[*DESIGN, *REPORT])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--levels", nargs="*", default=["0", "e", "50", "10", "10v", "10w", "2"])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    threadpool_limits(1)
    (show(asked.out) if asked.show else run(asked))


if __name__ == "__main__":
    main()
