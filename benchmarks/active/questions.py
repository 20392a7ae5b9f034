"""The default session with a simulated answerer: quality after every few questions.

Run: python benchmarks/active/questions.py --half tuning|shapes|faint|checking [--seeds 10]
     [--first 0] [--sets iris wine] [--budget 25] [--wrong 0.1] [--unknown-k]
     [--strategy committee] [--out out/questions.jsonl]

Real sets: a random 90 % of the samples for each seed, standardised. Synthetic ones: a new draw for
each seed. The answerer knows the classes; with --wrong that share of its answers is turned round.
Constants of the strategy were chosen on the tuning half alone. The shapes, generated ones on which
most starts are wrong, are for tuning too, and so are the faint sets, generated ones whose classes
hardly show: there answers lead astray more often. Prints means, the share of runs that are more
than .02 below their start, and how much really moved by the share that was expected to; every run
is a line of the output. Sets that scikit-learn does not hold come from the folder named by
LINKWISE_DATA, as <name>.npz with X and y.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_blobs,
    make_circles,
    make_moons,
)
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from linkwise.active import NoisyOracle, Session, TruthOracle
from linkwise.active.hypotheses import share_moved
from linkwise.active.stopping import ENOUGH, FEW, HALF, STOP

BUILT_IN = {
    "iris": load_iris,
    "wine": load_wine,
    "wdbc": load_breast_cancer,
    "digits": load_digits,
}
DATA = os.environ.get("LINKWISE_DATA", Path(__file__).parents[3] / "shared" / "data")
OUT = Path(__file__).parent / "out"
POINTS = (0, 5, 10, 15, 25, 50, 100)


def _corners(rng):
    """Four groups at the corners of a square; opposite ones are a class."""
    corner = rng.randint(4, size=200)
    centers = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    return centers[corner] + rng.uniform(-0.3, 0.3, size=(200, 2)), corner % 2


def _unbalanced(rng):
    return make_blobs([240, 40, 20], centers=rng.uniform(-12, 12, (3, 2)), random_state=rng)


def _noisy_corners(rng):
    """Draw the corners with overlap."""
    corner = rng.randint(4, size=200)
    centers = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])
    return centers[corner] + 0.2 * rng.normal(size=(200, 2)), corner % 2


def _spirals(rng):
    """Draw two arms."""
    arm, angle = rng.randint(2, size=300), 2.2 * np.pi * np.sqrt(rng.uniform(0.08, 1, 300))
    turned = angle + np.pi * arm
    points = angle[:, None] * np.column_stack((np.cos(turned), np.sin(turned)))
    return points + 0.5 * rng.normal(size=(300, 2)), arm


def _stripes(rng):
    """Draw four parallel stripes; every other one is of the same class."""
    stripe = rng.randint(4, size=300)
    height = stripe + 0.15 * rng.normal(size=300)
    return np.column_stack((rng.uniform(-2, 2, 300), height)), stripe % 2


def _mixture(rng):
    """Draw clusters of any shape and size, so wide that they overlap."""
    k = rng.randint(4, 8)
    share = 0.04 + rng.dirichlet(np.full(k, 2.0)) * (1 - 0.04 * k)
    y = rng.choice(k, size=220, p=share / share.sum())
    mean, X = rng.normal(size=(k, 8)), np.empty((220, 8))
    for c in range(k):
        turned = rng.normal(size=(8, 8)) / np.sqrt(8) * rng.uniform(0.5, 1.5)
        n = (y == c).sum()
        X[y == c] = mean[c] + rng.normal(size=(n, 8)) @ turned + 0.5 * rng.normal(size=(n, 8))
    return X * np.exp(rng.normal(size=8)), y


def _heavy(rng):
    """Draw the same with far samples."""
    X, y = _mixture(rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return np.sign(X) * np.expm1(np.abs(X)), y


def _decoy(rng):
    """Draw classes in three features, and other clusters, clearer ones, in three more."""
    k = rng.randint(3, 6)
    y, other = rng.randint(k, size=240), rng.randint(k, size=240)
    of_class, of_other = 1.6 * rng.normal(size=(k, 3)), 1.8 * rng.normal(size=(k, 3))
    first = of_class[y] + rng.normal(size=(240, 3))
    return np.hstack((first, of_other[other] + rng.normal(size=(240, 3)))), y


def _odd(rng):
    """Draw clusters, a third of whose samples are of any class."""
    k = rng.randint(3, 7)
    cluster = rng.randint(k, size=240)
    mean, y = 2.5 * rng.normal(size=(k, 4)), cluster.copy()
    moved = rng.uniform(size=240) < 0.35
    y[moved] = rng.randint(k, size=moved.sum())
    return mean[cluster] + rng.normal(size=(240, 4)), y


SYNTHETIC = {
    "moons": lambda rng: make_moons(300, noise=0.1, random_state=rng),
    "xor": _corners,
    "unbalanced": _unbalanced,
    "circles": lambda rng: make_circles(300, noise=0.09, factor=0.5, random_state=rng),
    "blobs": lambda rng: make_blobs(300, centers=6, cluster_std=0.9, random_state=rng),
}
SYNTHETIC |= {
    "noisy moons": lambda rng: make_moons(300, noise=0.2, random_state=rng),
    "rings": lambda rng: make_circles(400, noise=0.12, factor=0.4, random_state=rng),
    "near rings": lambda rng: make_circles(300, noise=0.07, factor=0.6, random_state=rng),
    "noisy corners": _noisy_corners,
    "spirals": _spirals,
    "stripes": _stripes,
}
SYNTHETIC |= {"mixture": _mixture, "heavy": _heavy, "decoy": _decoy, "odd": _odd}
HALVES = {
    "tuning": ["iris", "wdbc", "ecoli", "dermatology", "moons", "xor", "unbalanced"],
    "shapes": ["noisy moons", "rings", "near rings", "noisy corners", "spirals", "stripes"],
    "faint": ["mixture", "heavy", "decoy", "odd"],
    "checking": ["wine", "glass", "zoo", "ionosphere", "digits", "circles", "blobs"],
}


def load(name, seed):
    """Return a data set and its classes, drawn with a seed."""
    rng = np.random.RandomState(seed)
    if name in SYNTHETIC:
        X, y = SYNTHETIC[name](rng)
    elif name in BUILT_IN:
        X, y = BUILT_IN[name](return_X_y=True)
    else:
        stored = np.load(Path(DATA) / f"{name}.npz")
        X, y = stored["X"].astype(float), stored["y"]
    if name not in SYNTHETIC:
        kept = rng.permutation(len(y))[: round(0.9 * len(y))]
        X, y = X[kept], y[kept]
    return StandardScaler().fit_transform(X), np.unique(y, return_inverse=True)[1]


def run(name, seed, asked):
    """Simulate a session; return what happened."""
    X, y = load(name, seed)
    say = NoisyOracle(y, asked.wrong, random_state=seed) if asked.wrong else TruthOracle(y)
    k = "auto" if asked.unknown_k else int(y.max()) + 1
    settings = {"strategy": asked.strategy, "noisy": asked.wrong > 0, "random_state": seed}
    session = Session(X, k, **settings)
    kept = {0: (session.labels, session.still_to_change)}
    same, seconds = [], []
    for number in range(1, asked.budget + 1):
        begun = time.process_time()
        pair = session.next()
        if pair is None:
            break
        said = say(*pair)
        session.answer(*pair, said)
        if number in POINTS:
            kept[number] = (session.labels, session.still_to_change)
        seconds.append(time.process_time() - begun)
        same.append(said == "same")
    for number in POINTS:  # nothing is left to ask: it stays where it is
        if len(same) < number <= asked.budget:
            kept[number] = (session.labels, session.still_to_change)
    last = kept[max(kept)][0]
    return {
        "name": name,
        "seed": seed,
        "ari": {n: round(adjusted_rand_score(y, found), 4) for n, (found, _) in kept.items()},
        "k": {n: int(found.max()) + 1 for n, (found, _) in kept.items()},
        "true_k": int(y.max()) + 1,
        "expected": {n: round(share, 4) for n, (_, share) in kept.items()},
        "moved": {n: round(share_moved(found, last), 4) for n, (found, _) in kept.items()},
        "same": float(np.mean(same[:10])) if same else None,
        "cpu": round(float(np.mean(seconds)), 4) if seconds else None,
    }


def summary(runs):
    """Print means of the sets, and of all."""
    points = [n for n in POINTS if all(n in one["ari"] for one in runs)]
    header = ["set", "runs", *points, '"same" in 10', "CPU s"]
    print("| " + " | ".join(map(str, header)) + " |\n|" + "---|" * len(header))
    names = list(dict.fromkeys(one["name"] for one in runs))
    means = []
    for name in names:
        mine = [one for one in runs if one["name"] == name]
        ari = [np.mean([one["ari"][n] for one in mine]) for n in points]
        means.append(ari)
        rest = [np.mean([one[key] for one in mine]) for key in ("same", "cpu")]
        print(f"| {name} | {len(mine)} | " + " | ".join(f"{v:.3f}" for v in [*ari, *rest]) + " |")
    print("| **mean** | | " + " | ".join(f"{v:.3f}" for v in np.mean(means, axis=0)) + " | | |")
    ari = np.array([[one["ari"][n] for n in points] for one in runs])
    worse = (ari < ari[:, :1] - 0.02).mean(axis=0)
    print(
        f"| > .02 below start | {len(runs)} | " + " | ".join(f"{v:.0%}" for v in worse) + " | | |"
    )
    off = np.array([[abs(one["k"][n] - one["true_k"]) for n in points] for one in runs])
    print(
        "| k right, within one | | "
        + " | ".join(f"{(one == 0).mean():.0%}, {(one <= 1).mean():.0%}" for one in off.T)
        + " | | |"
    )


def calibration(runs):
    """Print what moved until the end, by the share that was expected to change."""
    last = max(n for n in POINTS if all(n in one["ari"] for one in runs))
    states = [
        (one["expected"][n], one["moved"][n])
        for one in runs
        for n in one["moved"]
        if ENOUGH <= n < last
    ]
    if not states:
        return
    expected, moved = np.array(states).T
    print("\n| expected to change | states | mean moved | moved > 5 % |\n|---|---|---|---|")
    edges = (0.0, STOP, FEW, HALF, np.inf)
    for low, high in pairwise(edges):
        inside = (low <= expected) & (expected < high)
        if inside.any():
            share = (moved[inside] > FEW).mean()
            band = f"{low:g} - {high:g}"
            print(f"| {band} | {inside.sum()} | {moved[inside].mean():.3f} | {share:.0%} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--half", choices=HALVES, default="tuning")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--budget", type=int, default=25)
    parser.add_argument("--wrong", type=float, default=0.0)
    parser.add_argument("--unknown-k", action="store_true")
    parser.add_argument("--strategy", default="committee")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    runs = []
    for name in asked.sets or HALVES[asked.half]:
        for seed in range(asked.first, asked.first + asked.seeds):
            runs.append(run(name, seed, asked))
            if asked.out:
                asked.out.parent.mkdir(exist_ok=True)
                with asked.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(runs[-1]) + "\n")
    summary(runs)
    calibration(runs)


if __name__ == "__main__":
    main()
