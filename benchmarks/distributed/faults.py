"""Workers killed with SIGKILL at random moments of a fit: the labels must stay the same.

    python benchmarks/distributed/faults.py 10

Each run kills one worker after a random share of the time that an undisturbed fit takes.
"""

from __future__ import annotations

import os
import sys
import time
from threading import Timer

import numpy as np


def main(n_runs, seed=0):
    import dask.array as da
    from sklearn.datasets import make_blobs

    from linkwise import NCut
    from linkwise.distributed import Prepared
    from linkwise.distributed.cluster import local_client

    X, _ = make_blobs(3_000, 6, centers=4, cluster_std=2.5, random_state=0)
    client = local_client(2)

    def fitted():
        there = Prepared(da.from_array(X, chunks=(600, 6)), client=client)
        return NCut(4, random_state=0).fit(there).labels_.compute()

    try:
        fitted()
        began = time.monotonic()
        wanted = fitted()
        usual = time.monotonic() - began
        rng = np.random.RandomState(seed)
        for run in range(n_runs):
            client.wait_for_workers(2, timeout=120)
            victim = list(client.run(os.getpid).values())[rng.randint(2)]
            after = (run + rng.uniform()) / n_runs * usual
            timer = Timer(after, os.kill, (victim, 9))
            began = time.monotonic()
            timer.start()
            same = bool((fitted() == wanted).all())
            seconds = time.monotonic() - began
            timer.join()
            print(f"run {run}: killed after {after:.1f} of {usual:.1f} s, {seconds:.1f} s, {same=}")
    finally:
        client.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(int, sys.argv[2:]))
