"""
Duplicates in a table of people
===============================

The same person, typed twice: with an error, a nickname, a missing field. ``Linkage`` finds which
records are one person. Nobody has to know how many persons there are.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise import Linkage
from linkwise.linkage.records import RecordVectorizer
from linkwise.metrics import adjusted_rand, pairwise_f
from linkwise.plots import COLOURS

# %%
# A table of 240 persons, each with one to four records, some letters of which are wrong.

rng = np.random.RandomState(1)
FIRST = [
    "Anna",
    "Bruno",
    "Carla",
    "David",
    "Elena",
    "Felix",
    "Greta",
    "Henri",
    "Irina",
    "Jonas",
    "Katja",
    "Luis",
    "Maria",
    "Nils",
]
LAST = [
    "Abel",
    "Berger",
    "Costa",
    "Diaz",
    "Engel",
    "Fischer",
    "Garcia",
    "Huber",
    "Ivanov",
    "Jansen",
    "Keller",
    "Lopez",
    "Meyer",
    "Novak",
]
CITY = ["Bern", "Lyon", "Porto", "Graz", "Turin", "Ghent", "Leeds", "Malmo"]


def mistyped(text):
    """Change, drop or double one letter in every third text."""
    if rng.rand() > 1 / 3:
        return text
    place = rng.randint(1, len(text))
    return text[:place] + rng.choice(["", text[place - 1], "e", "n"]) + text[place + 1 :]


people = [
    (
        f"{rng.choice(FIRST)} {rng.choice(LAST)}",
        rng.choice(CITY),
        f"19{rng.randint(40, 99)}-0{rng.randint(1, 9)}",
    )
    for _ in range(240)
]
person = np.repeat(np.arange(240), rng.randint(1, 5, size=240))
records = [[mistyped(field) for field in people[p]] for p in person]
table = dict(zip(("name", "city", "born"), map(list, zip(*records, strict=True)), strict=True))

# %%
# Letters become features; the number of clusters is found.

X = RecordVectorizer(["name", "city", "born"]).fit_transform(table)
model = Linkage(random_state=0).fit(X)
pairs = pairwise_f(person, model.labels_)
print(f"{len(person)} records, {len(people)} persons, {model.n_clusters_} found")
print(f"ARI {adjusted_rand(person, model.labels_):.3f}")
print(f"of the pairs found {pairs.precision:.1%} are right; {pairs.recall:.1%} of all are found")

# %%
# Some of them, as they were found: a colour and a bracket for each person, with the probability
# that a record is where it belongs.

chosen = [c for c in np.unique(model.labels_) if (model.labels_ == c).sum() >= 3][:7]
figure, (left, right) = plt.subplots(1, 2, figsize=(12.5, 6.6), width_ratios=[2.2, 1])
place = 0
for number, cluster in enumerate(chosen):
    rows = np.flatnonzero(model.labels_ == cluster)
    colour = COLOURS[number]
    left.plot([-0.4, -0.4], [place - 0.35, place + len(rows) - 0.65], color=colour, lw=6)
    for row in rows:
        left.text(0, place, table["name"][row], va="center", fontweight="bold")
        left.text(3.6, place, table["city"][row], va="center")
        left.text(5.3, place, table["born"][row], va="center", family="monospace")
        left.text(7.4, place, f"{model.probability_[row]:.2f}", va="center", color="0.45")
        place += 1
    place += 0.5
left.set(xlim=(-0.7, 8.2), ylim=(place, -1.2))
left.set_axis_off()
for x, head in ((0, "name"), (3.6, "city"), (5.3, "born"), (7.4, "sure")):
    left.text(x, -1, head, color="0.45")

sizes = np.arange(1, 7)
for offset, (name, labels) in zip(
    (-0.2, 0.2), (("true", person), ("found", model.labels_)), strict=True
):
    counts = np.bincount(np.bincount(labels), minlength=sizes[-1] + 1)[sizes]
    right.bar(sizes + offset, counts, width=0.4, label=name)
right.set(xlabel="records of a person", ylabel="persons", xticks=sizes)
right.set_title(f"{len(people)} persons, {model.n_clusters_} found")
right.legend()
plt.show()
