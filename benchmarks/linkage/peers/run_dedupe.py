"""dedupe on a table of records with reviewed pairs; run by `records.py` in its own environment.

Run: python run_dedupe.py records.csv pairs.csv clusters.csv

Every column is compared as a text that may be missing. The reviewed pairs are all that it learns
from; blocking rules that need an index of the texts are left out, as its manual advises if learning
takes too long. It is stopped after ten CPU minutes.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import dedupe
import numpy as np
import pandas as pd
from dedupe.variables import String

CPU_SECONDS = 600


def main(records, reviewed, out):
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    table = pd.read_csv(records, dtype=str, skipinitialspace=True).drop(columns="entity")
    table = table.apply(lambda column: column.str.strip().str.lower())
    table = table.astype(object).where(table.notna() & (table != ""), None)
    rows = dict(enumerate(table.to_dict("records")))
    pairs = pd.read_csv(reviewed)
    start = time.process_time()
    matcher = dedupe.Dedupe([String(name, has_missing=True) for name in table], num_cores=0)
    matcher.prepare_training(rows, sample_size=1_500)
    labelled = {"match": [], "distinct": []}
    for i, j, link in pairs.itertuples(index=False):
        labelled["match" if link == "same" else "distinct"].append((rows[i], rows[j]))
    matcher.mark_pairs(labelled)
    matcher.train(recall=1.0, index_predicates=False)
    clusters = matcher.partition(rows, threshold=0.5)
    labels = np.full(len(table), -1)
    for number, (members, _) in enumerate(clusters):
        labels[list(members)] = number
    np.savetxt(out, labels, fmt="%d")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"cpu": time.process_time() - start, "mb": memory}))


if __name__ == "__main__":
    main(*sys.argv[1:])
