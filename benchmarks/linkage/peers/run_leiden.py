"""Leiden's communities of a graph of neighbours; run by `leiden.py` in its own environment.

Run: python run_leiden.py graph.npz labels.npy

`graph.npz` holds `pairs`, `weight` and `n`. One row of labels each for modularity and for six
resolutions of the constant Potts model.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import igraph
import leidenalg
import numpy as np

RESOLUTIONS = np.geomspace(0.02, 0.6, 6)


def main(graph, out):
    stored = np.load(graph)
    start = time.process_time()
    network = igraph.Graph(int(stored["n"]), stored["pairs"].tolist())
    weight = stored["weight"].tolist()
    models = [(leidenalg.ModularityVertexPartition, {})]
    models += [(leidenalg.CPMVertexPartition, {"resolution_parameter": r}) for r in RESOLUTIONS]
    found = [
        leidenalg.find_partition(network, kind, weights=weight, seed=0, **settings).membership
        for kind, settings in models
    ]
    np.save(out, np.array(found))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"cpu": (time.process_time() - start) / len(found), "mb": memory}))


if __name__ == "__main__":
    main(*sys.argv[1:])
