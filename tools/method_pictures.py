"""Draw every method on a toy set, without and with constraints, into docs/images/methods.

Run: python tools/method_pictures.py [key ... | overview]
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from picture_parts import IMAGES, bare, known_labels, named, pairs, points, save
from PIL import Image
from sklearn.datasets import make_moons

from linkwise import METHODS, Affinity, Constraints
from linkwise.datasets import make_xor
from linkwise.metrics import adjusted_rand

# Data ----------------------------------------------------------------------------------------


def rows():
    """Four groups; the upper two belong together, but left and right are farther apart."""
    rng = np.random.RandomState(0)
    centers = np.array([(0, 0), (2, 0), (0, 1), (2, 1)])
    X = np.concatenate([rng.normal(size=(50, 2)) * (0.35, 0.2) + center for center in centers])
    return X, np.repeat([0, 0, 1, 1], 50)


def stripes():
    """Two long stripes: the direction of the largest variance says nothing."""
    rng = np.random.RandomState(0)
    y = np.repeat([0, 1], 100)
    return np.column_stack((rng.normal(size=200) * 2, y * 1.2 + rng.normal(size=200) * 0.25)), y


def things():
    """Forty small groups of two to six samples, on a shaken grid."""
    rng = np.random.RandomState(0)
    grid = np.array([(x, y) for x in range(8) for y in range(5)]) + rng.uniform(-0.3, 0.3, (40, 2))
    y = np.repeat(np.arange(40), rng.randint(2, 7, 40))
    return grid[y] + 0.13 * rng.normal(size=(len(y), 2)), y


moons = partial(make_moons, 240, noise=0.13, random_state=1)
clean_moons = partial(make_moons, 240, noise=0.06, random_state=1)
other_moons = partial(make_moons, 240, noise=0.12, random_state=0)
noisy_moons = partial(make_moons, 240, noise=0.16, random_state=0)
tight_corners = partial(make_xor, random_state=0)
corners = partial(make_xor, 50, spread=0.35, random_state=0)


def random_pairs(y, n_pairs):
    """Return random pairs of the true classes."""
    return Constraints.sample(y, n_pairs, random_state=0)


def two_must_links(y, _):
    """Return one must-link between the opposite corners of each class, as in the paper."""
    places = [np.flatnonzero(y == c) for c in (0, 1)]
    return Constraints(len(y), must_link=[(one[0], one[-1]) for one in places])


def random_labels(y, n_each):
    """Return the labels of some samples of each class."""
    rng = np.random.RandomState(1)
    given = np.full(len(y), -1)
    for c in np.unique(y):
        given[rng.choice(np.flatnonzero(y == c), n_each, replace=False)] = c
    return Constraints.from_labels(given)


def reviewed_pairs(y, n_pairs):
    """Return pairs of near samples with their true answers, as a reviewer would give them."""
    X, _ = things()
    near = np.argsort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1:7]
    rng = np.random.RandomState(0)
    first = rng.choice(len(y), n_pairs, replace=False)
    asked = np.column_stack((first, near[first, rng.randint(6, size=n_pairs)]))
    is_same = y[asked[:, 0]] == y[asked[:, 1]]
    return Constraints(len(y), asked[is_same], asked[~is_same])


# Pictures ------------------------------------------------------------------------------------


class Scene(NamedTuple):
    """What a picture shows: data, how many constraints of which kind, and settings."""

    data: Any
    amount: int = 20
    given: Any = random_pairs
    settings: Any = None


SCENES = {
    "auto": Scene(rows),
    "ncut": Scene(clean_moons, 0),
    "sl": Scene(moons),
    "csc": Scene(
        partial(make_xor, random_state=0),
        2,
        two_must_links,
        {"affinity": Affinity(None, scale="xu")},
    ),
    "signed": Scene(corners),
    "csp": Scene(moons),
    "sclc": Scene(moons),
    "fastge": Scene(moons),
    "ccsr": Scene(moons, 40),
    "srcp": Scene(rows),
    "e2cp": Scene(rows),
    "gp": Scene(rows),
    "cosc": Scene(noisy_moons, 40),
    "cut": Scene(noisy_moons, 40),
    "gfhf": Scene(noisy_moons, 5, random_labels),
    "llgc": Scene(noisy_moons, 10, random_labels, {"alpha": 0.9}),
    "poisson": Scene(other_moons, 2, random_labels),
    "cscgfhf": Scene(other_moons, 2, random_labels),
    "cpca": Scene(stripes, 20, random_pairs, {"n_components": 1, "beta": 10}),
    "clpp": Scene(rows, 20, random_pairs, {"n_components": 1}),
    "sskk": Scene(rows),
    "ccl": Scene(rows),
    "linkage": Scene(things, 40, reviewed_pairs),
}


def model_of(key, y, settings):
    """Return the estimator with its settings, and the number of clusters where it needs one."""
    settings = dict(settings or {})
    if "random_state" in METHODS[key]().get_params():
        settings["random_state"] = 0
    if key != "linkage":
        settings["n_clusters"] = len(np.unique(y))
    return METHODS[key](**settings)


class Panel(NamedTuple):
    """One half of a picture."""

    title: str
    data: Any
    known: Constraints | None = None


def panels(key):
    """Return the two halves; of a method without constraints, where it works and where it fails."""
    scene = SCENES[key]
    if not scene.amount:
        return [Panel("a clear gap", scene.data), Panel("noise across the gap", moons)]
    known = scene.given(scene.data()[1], scene.amount)
    n_labels = 0 if known.labels is None else int((known.labels >= 0).sum())
    title = f"{n_labels} labels" if n_labels else f"{known.n_pairs} pairs"
    return [Panel("no constraints", scene.data), Panel(title, scene.data, known)]


def draw(axis, key, panel):
    """Fit the method, and draw its clusters, its score and what was known."""
    X, y = panel.data()
    model = model_of(key, y, SCENES[key].settings).fit(X, constraints=panel.known)
    score = adjusted_rand(y, model.labels_)
    print(key, panel.title, f"{score:.3f}")
    points(axis, X, named(model.labels_, y), size=20)
    bare(axis, f"{panel.title}: ARI {score:.2f}".replace("-0.0", "0.0"))
    if panel.known is None:
        return
    if panel.known.n_pairs:
        pairs(axis, X, panel.known, width=1.4 if panel.known.n_pairs <= 25 else 0.8)
    else:
        known_labels(axis, X, panel.known.labels)


def picture(key):
    """Draw a method without and with constraints side by side."""
    figure, axes = plt.subplots(1, 2, figsize=(9.2, 3.3), layout="constrained")
    for axis, panel in zip(axes, panels(key), strict=True):
        draw(axis, key, panel)
    return figure


def overview(n_columns=4):
    """Put the right halves of all pictures together, with their keys."""
    keys = list(METHODS)
    n_rows = -(-len(keys) // n_columns)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=(2.6 * n_columns, 2.1 * n_rows), layout="constrained"
    )
    for axis in axes.flat:
        axis.axis("off")
    for axis, key in zip(axes.flat, keys, strict=False):
        image = Image.open(IMAGES / "methods" / f"{key}.png").convert("RGB")
        width, height = image.size
        axis.imshow(image.crop((width // 2, height // 10, width, height)), interpolation="lanczos")
        axis.set_title(key, fontsize=14)
    return figure


def main(keys):
    """Draw the named methods, or all, and then the overview."""
    warnings.simplefilter("ignore")
    for key in [key for key in keys or SCENES if key != "overview"]:
        save(picture(key), f"methods/{key}", dpi=90)
    save(overview(), "methods/overview", dpi=100)


if __name__ == "__main__":
    main(sys.argv[1:])
