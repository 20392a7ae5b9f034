"""Workers killed with SIGKILL at random moments of each stage of a fit: the labels stay the same.

    python benchmarks/distributed/faults.py 12

Each run kills one worker, in the stages by turns: after a random share of the time that the stage
takes in an undisturbed fit. Samples are shuffled and searched in cells, as many samples are.
"""

from __future__ import annotations

import os
import sys
import time
from threading import Timer

import numpy as np

STAGES = ("shuffle", "neighbours", "eigensolver", "rounding")


class Stages:
    """When the stages of a fit begin; something can be done some time after that."""

    def __init__(self):
        from linkwise.distributed import search
        from linkwise.distributed.matrix import RowBlockMatrix
        from linkwise.distributed.regions import CellGraph
        from linkwise.methods import ncut

        places = (
            (CellGraph, "divided"),
            (search, "_searched"),
            (RowBlockMatrix, "recurrence"),
            (ncut, "cluster_rows"),
        )
        self.begin({})
        for stage, (owner, name) in zip(STAGES, places, strict=True):
            setattr(owner, name, self._noted(stage, getattr(owner, name)))

    def begin(self, timers):
        """Forget what began; a stage starts its timer, if there is one."""
        self.began, self.timers = {}, timers

    def _noted(self, stage, function):
        def noting(*args, **settings):
            if stage not in self.began:
                self.began[stage] = time.monotonic()
                if stage in self.timers:
                    self.timers[stage].start()
            return function(*args, **settings)

        return noting

    def seconds(self):
        """Return how long each stage took, in a fit that ends now."""
        moments = [self.began[stage] for stage in STAGES] + [time.monotonic()]
        return dict(zip(STAGES, np.diff(moments), strict=True))


def main(n_runs, seed=0):
    import dask.array as da
    from sklearn.datasets import make_blobs

    from linkwise import NCut
    from linkwise.distributed import Prepared, search
    from linkwise.distributed.cluster import local_client

    search.EXACT_SAMPLES, search.PROPORTIONAL_FROM, search.REGIONS_PER_WORKER = 1_000, 2_000, 2
    X, _ = make_blobs(3_000, 6, centers=4, cluster_std=2.5, random_state=0)
    stages = Stages()
    rng = np.random.RandomState(seed)

    def fitted(client):
        there = Prepared(da.from_array(X, chunks=(600, 6)), client=client)
        return NCut(4, random_state=0).fit(there).labels_.compute()

    wanted = None
    for run in range(n_runs):
        with local_client(2) as client:  # a new cluster: its workers are all there
            fitted(client)
            stages.begin({})
            undisturbed = fitted(client)
            usual = stages.seconds()
            wanted = undisturbed if wanted is None else wanted
            victim = list(client.run(os.getpid).values())[rng.randint(2)]
            stage = STAGES[run % len(STAGES)]
            after = rng.uniform() * usual[stage]
            timer = Timer(after, os.kill, (victim, 9))
            stages.begin({stage: timer})
            began = time.monotonic()
            same = bool((fitted(client) == wanted).all() and (undisturbed == wanted).all())
            seconds = time.monotonic() - began
            timer.join()
            print(
                f"run {run}: killed in {stage} after {after:.2f} of {usual[stage]:.2f} s, "
                f"{seconds:.1f} s, {same=}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(int, sys.argv[2:]))
