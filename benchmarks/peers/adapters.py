"""Run one estimator on one problem, in the environment of its package; needs numpy alone.

Run: python adapters.py PACKAGE:METHOD folder problem.npz [problem.npz ...] (see --help)

An estimator is a function from a `Problem` to labels, with the package's defaults; what its
documentation leaves to the user is chosen as in its examples. The clock holds all that starts from
X: distances, graphs, matrices of constraints. It does not hold the import, nor a first fit on about
a hundred of the samples, which loads and compiles what is compiled. The processor seconds are
limited by a timer of the kernel, which ends the process whatever it is doing.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.metadata
import json
import resource
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MEGABYTE = 2**20


class Problem(NamedTuple):
    """What an estimator may look at. `known` holds -1 where no pair names the sample."""

    X: Any
    n_clusters: int
    must_link: Any
    cannot_link: Any
    known: Any
    seed: int

    @classmethod
    def read(cls, path):
        """Read a problem's file, except its true classes."""
        with np.load(path) as stored:
            arrays = [stored[name] for name in ("X", "must_link", "cannot_link", "known")]
            return cls(arrays[0], int(stored["n_clusters"]), *arrays[1:], int(stored["seed"]))

    def signed(self, must, cannot):
        """Return a dense matrix with a number for must-links and one for cannot-links."""
        matrix = np.zeros((len(self.X), len(self.X)))
        for pairs, value in ((self.must_link, must), (self.cannot_link, cannot)):
            matrix[pairs[:, 0], pairs[:, 1]] = matrix[pairs[:, 1], pairs[:, 0]] = value
        return matrix

    def labelled(self):
        """Return the samples whose class is known, and their classes."""
        where = np.flatnonzero(self.known >= 0)
        return where, self.known[where]


def small_part(problem):
    """Return a problem of about a hundred of the samples, with the pairs among them."""
    chosen = [problem.must_link[:15].ravel(), problem.cannot_link[:15].ravel(), np.arange(60)]
    kept = np.unique(np.concatenate(chosen)).astype(int)
    kept = kept[kept < len(problem.X)]
    place = np.full(len(problem.X), -1)
    place[kept] = np.arange(kept.size)

    def among(pairs):
        renamed = place[pairs]
        return renamed[(renamed >= 0).all(axis=1)]

    return problem._replace(
        X=problem.X[kept],
        must_link=among(problem.must_link),
        cannot_link=among(problem.cannot_link),
        known=problem.known[kept],
    )


# ------------------------------------------------------------------------------ estimators


def sklearn_method(method):
    from sklearn.cluster import KMeans, SpectralClustering
    from sklearn.semi_supervised import LabelSpreading

    def kmeans(problem):
        return KMeans(problem.n_clusters, random_state=problem.seed).fit(problem.X).labels_

    def spectral(problem):
        model = SpectralClustering(
            problem.n_clusters, affinity="nearest_neighbors", random_state=problem.seed
        )
        return model.fit(problem.X).labels_

    def spreading(problem):
        # Its default kernel is dense; with neighbours it is the sparse method that it is known for.
        model = LabelSpreading(kernel="knn")
        return model.fit(problem.X, problem.known).transduction_

    return {"kmeans": kmeans, "spectral": spectral, "label-spreading": spreading}[method]


def spectralcluster_method(_):
    import spectralcluster as peer

    def e2cp(problem):
        # Its own default propagation (alpha 0.6), on its own cosine affinity.
        model = peer.SpectralClusterer(
            min_clusters=problem.n_clusters,
            max_clusters=problem.n_clusters,
            laplacian_type=peer.LaplacianType.GraphCut,
            row_wise_renorm=True,
            constraint_options=peer.ConstraintOptions(
                constraint_name=peer.ConstraintName.ConstraintPropagation,
                apply_before_refinement=True,
            ),
        )
        return model.predict(problem.X, problem.signed(1.0, -1.0))

    return e2cp


def graphlearning_method(method):
    import graphlearning as peer

    def learn(problem):
        # Its default search for neighbours above five features is a package it does not install.
        found = peer.weightmatrix.knnsearch(problem.X, 11, method="kdtree")
        W = peer.weightmatrix.knn(problem.X, 10, knn_data=found)
        return getattr(peer.ssl, method)(W).fit_predict(*problem.labelled())

    return learn


def assc_method(method):
    from active_semi_clustering.semi_supervised import pairwise_constraints as peer

    kind = {"copkmeans": peer.COPKMeans, "pckmeans": peer.PCKMeans, "mpckmeans": peer.MPCKMeans}

    def cluster(problem):
        np.random.seed(problem.seed)  # noqa: NPY002 - the only seed that it has
        must, cannot = problem.must_link.tolist(), problem.cannot_link.tolist()
        return kind[method](problem.n_clusters).fit(problem.X, ml=must, cl=cannot).labels_

    return cluster


def linkage_method(method):
    from constrained_linkage import constrained_linkage
    from scipy.cluster.hierarchy import fcluster
    from scipy.spatial.distance import pdist, squareform

    def cluster(problem):
        # Weights and scaling as its documentation shows.
        tree = constrained_linkage(
            squareform(pdist(problem.X)),
            method=method,
            constraint_matrix=problem.signed(-0.6, 0.6),
            normalize_distances=True,
        )
        return fcluster(tree, problem.n_clusters, criterion="maxclust")

    return cluster


def linkwise_method(method):
    from linkwise import METHODS, Constraints

    def cluster(problem):
        model = METHODS[method](problem.n_clusters)
        if "random_state" in model.get_params():
            model.set_params(random_state=problem.seed)
        n = len(problem.X)
        if method == "ncut":
            known = None
        elif method in ("gfhf", "poisson"):
            known = Constraints(n, labels=problem.known)
        else:
            known = Constraints(n, problem.must_link, problem.cannot_link)
        return model.fit(problem.X, constraints=known).labels_

    return cluster


PACKAGES = {
    "scikit-learn": sklearn_method,
    "spectralcluster": spectralcluster_method,
    "graphlearning": graphlearning_method,
    "active-semi-supervised-clustering": assc_method,
    "constrained-linkage": linkage_method,
    "linkwise": linkwise_method,
}


# ------------------------------------------------------------------------------- measuring


def one_line(error):
    """Return the kind and text of an error in one line."""
    text = " ".join(str(error).split())
    return (f"{type(error).__name__}: {text}" if text else type(error).__name__)[:200]


def memory():
    """Return the megabytes that the process holds now, and that it held at the most."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak /= MEGABYTE if sys.platform == "darwin" else 1024
        return peak, peak
    # Not `ru_maxrss`: on Linux that starts at what the calling process holds.
    found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return int(found["VmRSS"]) / 1024, int(found["VmHWM"]) / 1024


def cpu_seconds():
    # Not `time.process_time`: while a timer runs, Linux moves that clock by whole ticks only.
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def timed(fit, problem, limit):
    """Return labels, processor and wall seconds of a fit, or die of SIGPROF at the limit."""
    gc.collect()
    wall, cpu = time.perf_counter(), cpu_seconds()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        labels = fit(problem)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return labels, cpu_seconds() - cpu, time.perf_counter() - wall


def versions(package):
    found = {}
    for name in (package, "numpy", "scipy", "scikit-learn", "numba"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def warm_up(fit, problem, limit):
    """Load and compile what the first fit would; what goes wrong will go wrong again."""
    with contextlib.suppress(Exception):
        timed(fit, small_part(problem), limit)


def measure(fit, problem, asked):
    """Fit up to three times; return the labels and what the best run took."""
    before = memory()[0]
    labels, cpu, wall = timed(fit, problem, asked.limit)
    runs = [(cpu, wall)]
    while cpu < asked.below and len(runs) < asked.repeats:
        runs.append(timed(fit, problem, asked.limit)[1:])
    peak = memory()[1]
    return labels, {
        "cpu_s": min(run[0] for run in runs),
        "wall_s": min(run[1] for run in runs),
        "runs": len(runs),
        "peak_mb": peak,
        "added_mb": max(0.0, peak - before),
    }


def write(place, answer, labels=None):
    """Write the labels first: an answer that can be read is complete."""
    if labels is not None:
        np.save(place.with_suffix(".npy"), np.asarray(labels).astype(int))
    unfinished = place.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(answer), encoding="utf-8")
    unfinished.replace(place.with_suffix(".json"))


def main(packages=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("estimator")
    parser.add_argument(
        "folder", type=Path, help="gets 0.json and 0.npy for the first problem, ..."
    )
    parser.add_argument("problems", type=Path, nargs="+", help="solved one after the other")
    parser.add_argument("--limit", type=float, default=120, help="processor seconds of a fit")
    parser.add_argument("--repeats", type=int, default=3, help="runs, of which the best counts")
    parser.add_argument("--below", type=float, default=20, help="repeat if the first took less")
    parser.add_argument("--memory", type=float, default=0, help="gigabytes allowed; 0 is no limit")
    asked = parser.parse_args()
    package, method = asked.estimator.split(":")
    warnings.simplefilter("ignore")
    if asked.memory:
        allowed = int(asked.memory * 2**30)
        resource.setrlimit(resource.RLIMIT_DATA, (allowed, allowed))
    fit = None
    for number, path in enumerate(asked.problems):
        labels = None
        try:
            problem = Problem.read(path)
            if fit is None:
                fit = (packages or PACKAGES)[package](method)
                warm_up(fit, problem, asked.limit)
            labels, answer = measure(fit, problem, asked)
        except Exception as error:
            answer = {"error": one_line(error)}
        answer["versions"] = versions(package)
        write(asked.folder / str(number), answer, labels)


if __name__ == "__main__":
    main()
