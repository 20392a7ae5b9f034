"""Splink and dedupe on FEBRL, with the reviewed pairs that `table.py` gives to `Linkage`.

Run: python benchmarks/linkage/records.py [--sets febrl2 febrl3] [--tools splink dedupe] [--seeds 1]

A tool runs in an environment of its own, which is made under build/ when it is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np
from data import FEBRL, load, reviewed_pairs
from scores import scores

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "linkage-peers"
OLDER = {"dedupe": ["BTrees<6.5"]}  # dedupe 3.0.3 calls `byValue`, which BTrees 6.5 has no more


def python_of(tool):
    """Return the Python of a tool's environment."""
    folder = BUILD / tool
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        needed = [tool, "numpy", "pandas", *OLDER.get(tool, [])]
        subprocess.run([python, "-m", "pip", "install", "-q", *needed], check=True)
    return python


def measure(tool, name, *, seed, wrong):
    X, y = load(name, seed)
    known, _ = reviewed_pairs(X, y, y.size // 10, wrong=wrong, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        pairs, labels = Path(folder) / "pairs.csv", Path(folder) / "labels.txt"
        with pairs.open("w", encoding="utf-8") as file:
            file.write("i,j,link\n")
            for links, word in ((known.must_link, "same"), (known.cannot_link, "different")):
                file.writelines(f"{i},{j},{word}\n" for i, j in links.tolist())
        script = HERE / "peers" / f"run_{tool}.py"
        command = [python_of(tool), script, FEBRL / f"{name}.csv", pairs, labels]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{tool} failed:\n{done.stderr[-3000:]}")
        spent = json.loads(done.stdout.splitlines()[-1])
        return {**scores(y, np.loadtxt(labels, dtype=int)), **spent}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=["febrl2", "febrl3"])
    parser.add_argument("--tools", nargs="*", default=["splink", "dedupe"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--wrong", type=float, default=0.0)
    asked = parser.parse_args()
    for name in asked.sets:
        for tool in asked.tools:
            for seed in range(asked.seeds):
                row = measure(tool, name, seed=seed, wrong=asked.wrong)
                shown = {key: round(value, 3) for key, value in row.items()}
                head = {"tool": tool, "set": name, "seed": seed, "wrong": asked.wrong}
                print(json.dumps({**head, **shown}), flush=True)


if __name__ == "__main__":
    main()
