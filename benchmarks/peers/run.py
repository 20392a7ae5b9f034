"""linkwise against other packages: CPU seconds, memory and quality on the same data and pairs.

Run: python benchmarks/peers/run.py [--only linkwise] [--fresh] [--chunk 300] [--write]

Makes an environment for each peer (peers.toml), runs every estimator on every problem in processes
of their own, and writes out/peers.csv, out/peers.md and out/peers.png. Finished cells are kept: the
same command goes on where it was stopped (one at a time). A limit, an error and its message are
results too.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import cells
import tables

OUT = Path(__file__).parent / "out"
IMAGE = Path(__file__).parents[2] / "docs" / "images" / "benchmarks" / "peers.png"
UNFINISHED = 3  # exit code: cells are left


def chosen(kinds, only):
    """Return the estimators of the named packages, or the named ones; all if none is named."""
    names = [name for name in kinds if not only or name in only or name.split(":")[0] in only]
    strange = set(only) - set(kinds) - {name.split(":")[0] for name in kinds}
    if strange:
        raise SystemExit(f"unknown: {', '.join(sorted(strange))}; known: {', '.join(kinds)}")
    return names


def environments(peers, names, folder, store):
    """Make what is missing, store what fails; return the interpreters of the other packages."""
    store.drop(lambda row: row["part"] == "install" and row["estimator"] in names)
    pythons = {}
    for package in dict.fromkeys(name.split(":")[0] for name in names):
        entry = peers[package]
        if "version" in entry:
            problem = cells.make_environment(package, entry, folder)
            print(f"{package}: {problem or 'installed'}", file=sys.stderr, flush=True)
            if problem:
                for name in names:
                    if name.split(":")[0] == package:
                        cell = cells.Cell("install", name, "", 0, 0, 0)
                        store.add(cell, {"status": "error", "message": problem[:200]})
                continue
        pythons[package] = cells.interpreter(package, entry, folder)
    return pythons


def measure(store, planned, pythons, asked):
    """Run what is not stored yet; return the number of cells that are left for another time."""
    start, n_left = time.monotonic(), 0
    for _, group in itertools.groupby(planned, key=lambda cell: cell[:4]):
        todo = [cell for cell in group if cell not in store]
        while todo and not cells.is_pointless(todo[0], store.rows):
            if time.monotonic() - start >= asked.chunk:
                n_left += len(todo)
                break
            python = pythons[todo[0].estimator.split(":")[0]]
            for cell, row in cells.run_cells(
                todo, python, OUT, limit=asked.limit, memory=asked.memory
            ):
                store.add(cell, row)
                text = row.get("message") or f"{row['cpu_s']:.3g} s, ARI {row['ari']:.3f}"
                print(*cell, row["status"], text, file=sys.stderr, flush=True)
            todo = [cell for cell in todo if cell not in store]
    return n_left


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="packages or package:method")
    parser.add_argument("--parts", nargs="*", default=["quality", "speed"])
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="forget what is chosen first; with --chunk, the first time only",
    )
    parser.add_argument(
        "--chunk",
        type=float,
        default=float("inf"),
        help=f"start nothing after so many seconds and end with code {UNFINISHED}; 0: tables only",
    )
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds of a fit")
    parser.add_argument("--memory", type=float, default=8, help="gigabytes of a process")
    parser.add_argument("--envs", type=Path, default=OUT / "envs", help="folder of environments")
    parser.add_argument("--write", action="store_true", help=f"copy the picture to {IMAGE.name}, "
                        "print the section of docs/benchmarks.md")  # fmt: skip
    return parser.parse_args()


def main():
    from linkwise import METHODS

    asked = options()
    peers = cells.read_peers()
    kinds = cells.kinds(peers, without=() if "auto" in METHODS else ("linkwise:auto",))
    names = chosen(kinds, asked.only)
    OUT.mkdir(exist_ok=True)
    store = cells.Store(OUT / "peers.csv")
    if asked.fresh:
        old = store.drop(lambda row: row["estimator"] in names and row["part"] in asked.parts)
        print(f"forgot {old} cells", file=sys.stderr)
    n_left = 0
    if asked.chunk > 0:
        pythons = environments(peers, names, asked.envs, store)
        able = [name for name in names if name.split(":")[0] in pythons]
        n_left = measure(store, cells.plan(able, asked.parts), pythons, asked)
    rows = [row for row in store.rows if row["estimator"] in kinds]
    text = tables.page(rows, kinds)
    (OUT / "peers.md").write_text(text, encoding="utf-8")
    tables.draw(rows, kinds, OUT / "peers.png", asked.limit)
    if asked.write:
        IMAGE.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(OUT / "peers.png", IMAGE)
        text = tables.page(rows, kinds, image="images/benchmarks/peers.png")
    print(text)
    if n_left:
        print(f"{n_left} cells are left, at the most", file=sys.stderr)
        sys.exit(UNFINISHED)


if __name__ == "__main__":
    main()
