"""
A report to click
=================

One HTML file about a clustering, to open, send or print: who the clusters are, a map, the pairs,
what was chosen and why. It needs no network.

.. raw:: html

   <p><a href="customers.html"><strong>Open the report of this example</strong></a>, or see it
   here:</p>
   <iframe src="customers.html" title="The report" width="100%" height="640"
     style="border: 1px solid #d0d4da; border-radius: 6px; background: #fff"></iframe>
"""

# sphinx_gallery_thumbnail_path = 'images/auto-report.png'

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, Constraints
from linkwise.datasets import make_customers
from linkwise.metrics import adjusted_rand
from linkwise.plots import draw_clusters, matched
from linkwise.report import write_report

table, y = make_customers(300, random_state=0)
known = Constraints.sample(y, 30, random_state=0)

# %%
# Numbers are standardised, categories become columns of 0 and 1.

columns = [values[:, None] for values in table.values() if values.dtype.kind == "f"]
numbers = StandardScaler().fit_transform(np.hstack(columns))
words = [
    values[:, None] == np.unique(values) for values in table.values() if values.dtype.kind == "U"
]
X = np.hstack([numbers, *words]).astype(float)
plain = Auto(3, scaling="given", random_state=0).fit(X)
model = Auto(3, scaling="given", random_state=0).fit(X, constraints=known)
write_report(
    "customers.html",
    X=X,
    labels=model.labels_,
    constraints=known,
    result=model,
    feature_values=table,  # in the units of their owner
    truth=y,
    title="Customers",
    random_state=0,
)

# %%
# What it is about: three segments of customers, which cut across two generations that are easier
# to see.

spending = np.log10(np.column_stack((table["visits"], table["basket"])))
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.6))
for ax, name, fitted in zip(axes, ("No pairs", "30 pairs"), (plain, model), strict=True):
    labels = matched(fitted.labels_, y)
    given = known if fitted is model else None
    title = f"{name}: ARI {adjusted_rand(y, labels):.2f}"
    draw_clusters(ax, spending, labels, constraints=given, title=title)
    ax.set(xlabel="visits (log)", ylabel="basket (log)")
plt.show()
