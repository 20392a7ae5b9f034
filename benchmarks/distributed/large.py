"""Blobs or a surface of 16 features in chunks on disk, up to sizes that one machine does not hold.

    python benchmarks/distributed/large.py write 8000000 /tmp/blobs blobs
    python benchmarks/distributed/large.py write 8000000 /tmp/surface surface
    python benchmarks/distributed/large.py one 1000000 /tmp/blobs results.jsonl SpectralLearning
    python benchmarks/distributed/large.py dask 8000000 /tmp/blobs results.jsonl Auto

Notes for each step: seconds, CPU seconds of the client (with the scheduler) and of the workers,
the largest resident memory of each process so far, the quality, and what workers got from each
other in a product, as a share of the block of vectors that is multiplied. LIMIT is the memory
limit of a worker.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import data
import numpy as np

CHUNK, N_PAIRS, WORKERS, WIDTH = 100_000, 1_000, 2, 16
LIMIT = os.environ.get("LIMIT", "4GB")


def write(n, folder, kind):
    """Write samples and clusters, a file a chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n // CHUNK):
        X, y = data.CHUNKS[kind](number, CHUNK)
        np.save(folder / f"X-{number:04d}.npy", X)
        np.save(folder / f"y-{number:04d}.npy", y.astype(np.int8))


def truth(n, folder):
    return np.concatenate([np.load(folder / f"y-{i:04d}.npy") for i in range(n // CHUNK)])


def largest_resident():
    """Return the megabytes that this process had in memory at its peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return round(int(next(s for s in lines if s.startswith("VmHWM")).split()[1]) / 1e3)


class Notes:
    """Lines of measurements."""

    def __init__(self, path, n, client=None, **facts):
        self.path, self.client, self.facts = Path(path), client, {"n": n, **facts}
        self.start()

    def workers(self, function):
        """Return what a function returns on each worker."""
        return list(self.client.run(function).values()) if self.client else []

    def start(self):
        """Begin to count anew."""
        self.wall, self.here = time.monotonic(), time.process_time()
        self.there = sum(self.workers(time.process_time))

    def add(self, step, **row):
        """Write a line, and begin to count anew."""
        seconds, here = time.monotonic() - self.wall, time.process_time() - self.here
        there = sum(self.workers(time.process_time)) - self.there
        row = {
            **self.facts,
            "step": step,
            "seconds": round(seconds, 1),
            "cpu": round(here + there, 1),
            "cpu_client": round(here, 1),
            "peak_client": largest_resident(),
            "peak_workers": self.workers(largest_resident),
            "pids": self.workers(os.getpid),
            **row,
        }
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.start()


def received(client):
    def of_worker(dask_worker):  # its log holds the last thousands of transfers
        return sum(int(entry["total"]) for entry in dask_worker.transfer_incoming_log)

    return sum(client.run(of_worker).values())


def exchanged(W, client):
    """Return the bytes that workers get from each other in a product, as a share of the block."""
    R = np.random.default_rng(0).normal(size=(W.shape[0], WIDTH)).astype(np.float32)
    one = np.ones(WIDTH)
    bytes_of = []
    for n_steps in (3, 8):
        before = received(client)
        W.recurrence(None, R, [(0.1 * one, 0 * one, one)] * n_steps, center=0.0, scale=0.1)
        bytes_of.append(received(client) - before)
    return (bytes_of[1] - bytes_of[0]) / 5 / R.nbytes


def constraints_of(y):
    from linkwise import Constraints

    return Constraints.sample(y, N_PAIRS, random_state=0)


def fits(notes, prepared, y, methods):
    import linkwise

    known = constraints_of(y)
    for method in methods:
        notes.start()
        model = getattr(linkwise, method)(data.CENTERS, random_state=0)
        labels = np.asarray(model.fit(prepared, constraints=known).labels_)
        products = getattr(model.result_, "n_products", None) if hasattr(model, "result_") else None
        ari = linkwise.metrics.adjusted_rand(labels, y)
        notes.add(method, ari=round(ari, 4), products=products)


def one_machine(n, folder, path, methods):
    from linkwise import Prepared

    notes = Notes(path, n, where="one machine")
    X = np.concatenate([np.load(folder / f"X-{i:04d}.npy") for i in range(n // CHUNK)])
    prepared = Prepared(X)
    entries = prepared.W.nnz
    notes.add("graph", entries=entries, recall=prepared.affinity_.recall_)
    fits(notes, prepared, truth(n, folder), methods)


def on_dask(n, folder, path, methods):
    import dask
    import dask.array as da
    from distributed import Client

    from linkwise.distributed import Prepared

    load = dask.delayed(np.load, pure=True)
    parts = [
        da.from_delayed(load(str(folder / f"X-{i:04d}.npy")), (CHUNK, data.FEATURES), np.float32)
        for i in range(n // CHUNK)
    ]
    with Client(
        n_workers=WORKERS,
        threads_per_worker=1,
        memory_limit=LIMIT,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        local_directory=str(folder),
    ) as client:
        notes = Notes(path, n, client, where="Dask", limit=LIMIT)
        with Prepared(da.concatenate(parts), client=client) as prepared:
            notes.add("check")
            searches = watch_search()
            W = prepared.W
            entries = int(sum(W.collected(entries_of)))
            shares = {"blocks": W.n_blocks, "recall": prepared.recall_, "halo": W.halo_share}
            search = searches.pop()  # and forget its tables
            shares |= {"cells": search.n_cells, "looked_at": search.n_probes}
            del search
            notes.add("graph", entries=entries, **shares)
            notes.add("product", exchanged=round(exchanged(W, client), 4))
            fits(notes, prepared, truth(n, folder), methods)


def watch_search():
    """Return a list that gets what every search finds, and how many cells it looked at."""
    from linkwise.distributed import prepared

    found, search = [], prepared.find_neighbors

    def watched(*args):
        found.append(search(*args))
        return found[-1]

    prepared.find_neighbors = watched
    return found


def entries_of(block):
    return block.nnz


if __name__ == "__main__":
    what, n, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if what == "write":
        write(n, folder, sys.argv[4])
    else:
        run = one_machine if what == "one" else on_dask
        run(n, folder, sys.argv[4], sys.argv[5:])
