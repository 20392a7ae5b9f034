"""Every method on Dask beside the same method on one machine: labels, eigenvalues, CPU seconds.

    python benchmarks/distributed/against_one_machine.py blobs 500000 results.jsonl
    python benchmarks/distributed/against_one_machine.py mnist 70000 results.jsonl NCut E2CP

CPU seconds are those of the client, the scheduler and the workers together.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import data
import numpy as np

METHODS = [
    "NCut",
    "SpectralLearning",
    "CSC",
    "SignedCSC",
    "FastGE",
    "GFHF",
    "LLGC",
    "Poisson",
    "E2CP",
    "Auto",
]
N_PAIRS, N_LABELS, WORKERS = 1_000, 200, 2


def cpu_here():
    return time.process_time()


def cpu_of_workers(client):
    return sum(client.run(time.process_time).values())


def known_for(y, *, labels):
    from linkwise import Constraints

    if not labels:
        return Constraints.sample(y, N_PAIRS, random_state=0)
    given = np.full(y.size, -1)
    some = np.random.RandomState(1).choice(y.size, N_LABELS, replace=False)
    given[some] = y[some]
    return Constraints.from_labels(given)


def main(name, n, path, methods):
    import dask.array as da

    import linkwise
    from linkwise import metrics
    from linkwise.distributed import Prepared
    from linkwise.distributed.cluster import local_client

    X, y = data.blobs(n) if name == "blobs" else data.mnist()
    n = min(n, len(X))
    X, y = X[:n], y[:n]
    client = local_client(WORKERS)

    def note(**row):
        with Path(path).open("a") as file:
            file.write(json.dumps({"data": name, "n": n, **row}) + "\n")

    def total():
        return cpu_here() + cpu_of_workers(client)

    try:
        before = cpu_here()
        one = linkwise.Prepared(X.astype(np.float64))
        n_entries = one.W.nnz
        graph_one = cpu_here() - before
        before = total()
        many = Prepared(da.from_array(X, chunks=(-(-n // 10), -1)), client=client)
        halo = many.W.halo_share
        note(
            step="graph",
            cpu_one=round(graph_one, 1),
            cpu_dask=round(total() - before, 1),
            recall_one=one.affinity_.recall_,
            recall_dask=many.recall_,
            halo=round(halo, 3),
            entries=n_entries,
            entries_dask=int(sum(many.W.collected(entries_of))),
        )
        for method in methods:
            Method = getattr(linkwise, method)
            labels = method in ("GFHF", "LLGC", "Poisson")
            given = {} if method == "NCut" else {"constraints": known_for(y, labels=labels)}
            before = total()
            there = Method(data.CENTERS, random_state=0).fit(many.cold(), **given)
            found = np.asarray(there.labels_)
            cpu_dask = total() - before
            before = cpu_here()
            here = Method(data.CENTERS, random_state=0).fit(one.cold(), **given)
            cpu_one = cpu_here() - before
            values = here.result_.eigenvalues
            gap = None if values is None else float(abs(there.result_.eigenvalues - values).max())
            note(
                step=method,
                ari=metrics.adjusted_rand(found, here.labels_),
                truth_one=metrics.adjusted_rand(here.labels_, y),
                truth_dask=metrics.adjusted_rand(found, y),
                eigenvalues=gap,
                cpu_one=round(cpu_one, 1),
                cpu_dask=round(cpu_dask, 1),
            )
    finally:
        client.close()


def entries_of(block):
    return block.nnz


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:] or METHODS)
