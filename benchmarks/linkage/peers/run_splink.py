"""Splink on a table of records with reviewed pairs; run by `records.py` in its own environment.

Run: python run_splink.py records.csv pairs.csv clusters.csv

Comparisons and blocking rules are those of Splink's own tutorial for FEBRL, as far as its names go.
Probabilities of agreement among matches come from the reviewed pairs that are matches.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np
import pandas as pd
import splink.comparison_library as cl
from splink import DuckDBAPI, Linker, SettingsCreator, block_on

NAMES = ("given_name", "surname", "address_1", "suburb")
EXACT = ("street_number", "postcode", "state")


def main(records, reviewed, out):
    table = pd.read_csv(records, dtype=str, skipinitialspace=True)
    table = table.apply(lambda column: column.str.strip().str.lower()).replace("", None)
    table.insert(0, "unique_id", np.arange(len(table)))
    pairs = pd.read_csv(reviewed)
    start = time.process_time()
    comparisons = [cl.JaroWinklerAtThresholds(name, [0.9, 0.7]) for name in NAMES]
    comparisons += [cl.ExactMatch(name) for name in EXACT]
    comparisons += [
        cl.DamerauLevenshteinAtThresholds("date_of_birth", [1, 2]),
        cl.DamerauLevenshteinAtThresholds("soc_sec_id", [1, 2]),
    ]
    rules = [
        block_on("soc_sec_id"),
        block_on("date_of_birth"),
        block_on("given_name", "surname"),
        block_on("surname", "postcode"),
        block_on("given_name", "postcode"),
        block_on("address_1", "suburb"),
    ]
    settings = SettingsCreator(
        link_type="dedupe_only",
        comparisons=comparisons,
        blocking_rules_to_generate_predictions=rules,
    )
    database = DuckDBAPI()
    linker = Linker(database.register(table), settings)
    linker.training.estimate_probability_two_random_records_match(
        [block_on("soc_sec_id"), block_on("given_name", "surname", "date_of_birth")], recall=0.8
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    same = pairs[pairs["link"] == "same"]
    labels = pd.DataFrame(
        {
            "unique_id_l": same["i"].to_numpy(),
            "unique_id_r": same["j"].to_numpy(),
            "clerical_match_score": 1.0,
        }
    )
    known = linker.table_management.register_labels_table(database.register(labels))
    linker.training.estimate_m_from_pairwise_labels(known)
    found = linker.inference.predict(threshold_match_probability=0.5)
    clusters = linker.clustering.cluster_pairwise_predictions_at_threshold(
        found, threshold_match_probability=0.5
    ).as_pandas_dataframe()
    by_row = clusters.set_index("unique_id")["cluster_id"].sort_index()
    np.savetxt(out, np.unique(by_row, return_inverse=True)[1], fmt="%d")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"cpu": time.process_time() - start, "mb": memory}))


if __name__ == "__main__":
    main(*sys.argv[1:])
