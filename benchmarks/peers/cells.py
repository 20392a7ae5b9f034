"""The cells of the comparison: their data files, their order, their store, and running one."""

from __future__ import annotations

import csv
import datetime
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).parent
SETS = ("iris", "wine", "wdbc", "digits")
SHARES = (0.1, 0.5, 2.0)  # pairs per sample
N_DRAWS = 5
SIZES = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
FEW_FREE = 5  # with fewer free samples their ARI means nothing
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR", "VECLIB_MAXIMUM")
KEY = ("part", "estimator", "data", "n", "pairs", "seed")
COLUMNS = (*KEY, "status", "message", "cpu_s", "wall_s", "runs", "peak_mb", "added_mb", "ari",
           "free_ari", "n_free", "violated", "load", "date", "versions")  # fmt: skip


class Cell(NamedTuple):
    """One estimator on one problem."""

    part: str
    estimator: str
    data: str
    n: int
    pairs: int
    seed: int


# ------------------------------------------------------------------------------------- peers


def read_peers(path=HERE / "peers.toml"):
    with Path(path).open("rb") as file:
        return tomllib.load(file)


def kinds(peers, without=()):
    """Return what each estimator is given: "none", "pairs" or "labels"."""
    return {
        f"{package}:{method}": kind
        for package, entry in peers.items()
        for method, kind in entry["methods"].items()
        if f"{package}:{method}" not in without
    }


def requirements(package, entry):
    return [f"{package}=={entry['version']}", *entry.get("also", ())]


def interpreter(package, entry, folder):
    """Return the interpreter of a package, None if there is no environment yet."""
    if "version" not in entry:
        return Path(sys.executable)
    place = Path(folder) / f".venv-{package}" / "bin" / "python"
    return place if place.exists() else None


def make_environment(package, entry, folder):
    """Make an environment, install the package by its name; return an error in one line or ""."""
    place = Path(folder) / f".venv-{package}"
    wanted = requirements(package, entry)
    stamp = place / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8").split() == wanted:
        return ""
    pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet"]
    for command in (
        [sys.executable, "-m", "venv", place],
        [*pip, "--disable-pip-version-check", *wanted],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            output = [line for line in done.stderr.splitlines() if line.strip()]
            errors = [line for line in output if line.startswith("ERROR")] or output
            return " ".join(errors[-1:]) or f"ended with code {done.returncode}"
    stamp.write_text("\n".join(wanted), encoding="utf-8")
    return ""


# -------------------------------------------------------------------------------------- data


def truth(data, n):
    """Return the samples and classes of a set, standardised."""
    from sklearn import datasets
    from sklearn.preprocessing import StandardScaler

    if data == "blobs":
        X, y = datasets.make_blobs(n, 10, centers=5, cluster_std=4.0, random_state=0)
    else:
        loaders = {"wdbc": "load_breast_cancer"}
        X, y = getattr(datasets, loaders.get(data, f"load_{data}"))(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def problem_file(cell, folder):
    """Return the file that all estimators read; it is made once."""
    path = Path(folder) / f"{cell.data}_{cell.n}_{cell.pairs}_{cell.seed}.npz"
    if not path.exists():
        from linkwise import Constraints

        X, y = truth(cell.data, cell.n)
        given = Constraints.sample(y, cell.pairs, cell.seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp.npz")
        np.savez(
            unfinished,
            X=X,
            y=y,
            n_clusters=np.unique(y).size,
            must_link=given.must_link,
            cannot_link=given.cannot_link,
            known=np.where(given.constrained, y, -1),
            seed=cell.seed,
        )
        unfinished.replace(path)
    return path


def quality(path, labels):
    """Return ARI over all and over free samples, the number of these, and the violated share."""
    from sklearn.metrics import adjusted_rand_score

    with np.load(path) as stored:
        y, known = stored["y"], stored["known"]
        must, cannot = stored["must_link"], stored["cannot_link"]
    if labels.shape != y.shape:
        raise ValueError(f"labels of shape {labels.shape} for {y.size} samples")
    free = known < 0
    few = free.sum() <= FEW_FREE
    broken = (labels[must[:, 0]] != labels[must[:, 1]]).sum()
    broken += (labels[cannot[:, 0]] == labels[cannot[:, 1]]).sum()
    return {
        "ari": adjusted_rand_score(y, labels),
        "free_ari": float("nan") if few else adjusted_rand_score(y[free], labels[free]),
        "n_free": int(free.sum()),
        "violated": float(broken / max(1, len(must) + len(cannot))),
    }


# -------------------------------------------------------------------------------------- plan


def plan(estimators, parts):
    """Yield all cells, smallest problems first, all estimators on one before the next."""
    sizes = {"iris": 150, "wine": 178, "wdbc": 569, "digits": 1797}
    if "quality" in parts:
        for data, name, share, seed in itertools.product(SETS, estimators, SHARES, range(N_DRAWS)):
            yield Cell("quality", name, data, sizes[data], round(share * sizes[data]), seed)
    if "speed" in parts:
        for n, name in itertools.product(SIZES, estimators):
            yield Cell("speed", name, "blobs", n, n // 10, 0)


def is_pointless(cell, rows):
    """Return whether a smaller problem, or another draw on the set, was over a limit already."""
    return any(
        (row["status"] == "limit" or row["message"].startswith("MemoryError"))
        and row["part"] == cell.part
        and row["estimator"] == cell.estimator
        and row["data"] == cell.data
        and int(row["n"]) <= cell.n
        for row in rows
    )


# ------------------------------------------------------------------------------------- store


def key_of(row):
    return tuple(str(row[name]) for name in KEY)


class Store:
    """Finished cells as rows of a CSV file, written one by one."""

    def __init__(self, path):
        self.path = Path(path)
        self.rows = []
        if self.path.exists():
            with self.path.open(newline="", encoding="utf-8") as file:
                read = list(csv.DictReader(file))
            # A run that was killed while writing leaves half a row.
            self.rows = [row for row in read if row.get("versions") is not None]
            if len(self.rows) < len(read):
                self._rewrite()
        self._known = {key_of(row) for row in self.rows}

    def __contains__(self, cell):
        return tuple(map(str, cell)) in self._known

    def add(self, cell, found):
        """Store a finished cell."""
        row = dict.fromkeys(COLUMNS, "") | cell._asdict() | found
        row = {name: shown(row[name]) for name in COLUMNS}
        is_new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if is_new:
                writer.writeheader()
            writer.writerow(row)
        self.rows.append(row)
        self._known.add(key_of(row))

    def drop(self, is_old):
        """Forget rows; return how many."""
        kept = [row for row in self.rows if not is_old(row)]
        n_dropped = len(self.rows) - len(kept)
        if n_dropped:
            self.rows = kept
            self._known = {key_of(row) for row in kept}
            self._rewrite()
        return n_dropped

    def _rewrite(self):
        unfinished = self.path.with_suffix(".tmp")
        with unfinished.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(self.rows)
        unfinished.replace(self.path)


def shown(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ----------------------------------------------------------------------------------- running


def run_child(command, folder, problems, *, limit):
    """Run an estimator's process on some problems; yield a status and an answer for each.

    The limit is on processor seconds and kept by the process itself (SIGPROF). On a busy machine
    the wall clock means little: it ends only what has stopped working. After a limit or a crash
    there is no answer for the problems that follow.
    """
    pinned = {f"{name}_NUM_THREADS": "1" for name in THREADS}
    patience = (5 * limit + 60) * len(problems)
    with (folder / "errors.txt").open("w+", encoding="utf-8", errors="replace") as output:
        try:
            code = subprocess.run(
                [*command, "--limit", str(limit)],
                stdout=subprocess.DEVNULL,
                stderr=output,
                env=os.environ | pinned,
                timeout=patience,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            code = None
        output.seek(0)
        last = [line.strip() for line in output if line.strip()][-1:]
    for number in range(len(problems)):
        answer = folder / f"{number}.json"
        if not answer.exists():
            yield ended(code, last, limit=limit, patience=patience)
            return
        found = json.loads(answer.read_text(encoding="utf-8"))
        numbers = found.pop("versions").items()
        found["versions"] = "; ".join(f"{name} {version}" for name, version in numbers)
        if "error" in found:
            found["message"] = found.pop("error")
        yield ("error" if "message" in found else "done"), found


def ended(code, last, *, limit, patience):
    """Return status and message of a process that ended before its answer."""
    if code is None:
        return "limit", {"message": f"no answer in {patience:g} s of wall clock"}
    if code == -signal.SIGPROF:
        return "limit", {"message": f"over {limit:g} CPU s"}
    how = signal.Signals(-code).name if code < 0 else f"code {code}"
    return "error", {"message": " ".join([f"ended with {how}:", *last])[:200]}


def run_cells(cells, python, folder, *, limit=120, memory=8):
    """Run cells of an estimator and a set in a process of their own; yield each with its row."""
    paths = [problem_file(cell, folder / "data") for cell in cells]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        answers = Path(place)
        command = [python, HERE / "adapters.py", cells[0].estimator, answers, *paths]
        command += ["--below", 20 if cells[0].part == "speed" else 1, "--memory", memory]
        finished = run_child(list(map(str, command)), answers, cells, limit=limit)
        for number, (cell, (status, found)) in enumerate(zip(cells, finished, strict=False)):
            result = {"status": status, **found}
            if status == "done":
                try:
                    result |= quality(paths[number], np.load(answers / f"{number}.npy"))
                except ValueError as error:
                    result |= {"status": "error", "message": str(error)}
            today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
            yield cell, result | {"load": load, "date": today}
