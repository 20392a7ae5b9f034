"""
The annotation page in pictures
===============================

``linkwise serve table.csv`` opens a page in your browser: two samples, one question, one key an
answer, and the clusters follow on the map. Nothing leaves your machine.

.. code-block:: bash

   linkwise datasets digits -o digits.csv
   linkwise serve digits.csv -k 10 --truth class --image 8x8 --no-scale

:doc:`All about the page </guide/page>`.
"""

from pathlib import Path

import matplotlib.pyplot as plt

folder = next(
    (up / "docs" / "images" for up in Path.cwd().parents if (up / "docs" / "images").is_dir()),
    Path("docs/images"),
)

# %%
# The question, the map, and what the answers have changed so far.

figure, ax = plt.subplots(figsize=(11, 6.9))
ax.imshow(plt.imread(folder / "page.png"))
ax.set_axis_off()

# %%
# A contradiction is shown as the chain of your own answers, each of which can be taken back.

figure, ax = plt.subplots(figsize=(11, 6.9))
ax.imshow(plt.imread(folder / "page-conflict.png"))
ax.set_axis_off()

# %%
# With a known truth, the page draws what the answers have gained. It fits on a phone.

figure, axes = plt.subplots(1, 2, figsize=(11, 6.4), width_ratios=[2.4, 1])
for ax, name in zip(axes, ("page-quality.png", "page-phone.png"), strict=True):
    ax.imshow(plt.imread(folder / name))
    ax.set_axis_off()
plt.show()
