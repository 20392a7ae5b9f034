"""What the pictures of the documentation share: colours, points, pairs, and small files."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from PIL import Image
from scipy.optimize import linear_sum_assignment

from linkwise.plots import COLOURS, SHAPES, VIOLATED

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
GREY = "#9aa0a6"
INK = "#222222"
TOGETHER, APART = "#117733", VIOLATED
N_COLOURS = 160  # of a stored picture; a quarter of the bytes, and no difference to the eye


def named(labels, y):
    """Return the labels in the numbers of the classes they agree with most."""
    k = max(labels.max(), y.max()) + 1
    table = np.array([[np.sum((labels == a) & (y == b)) for b in range(k)] for a in range(k)])
    return linear_sum_assignment(-table)[1][labels]


def bare(axis, title="", size=12):
    """Leave nothing of the axes but a thin frame and the title."""
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set_color("#d5d8dc")
    axis.set_title(title, fontsize=size, color=INK)


def points(axis, P, labels=None, size=26):
    """Draw samples: grey, or a colour and a shape for each cluster; -1 stays grey."""
    labels = np.full(len(P), -1) if labels is None else labels
    for cluster in np.unique(labels):
        color = GREY if cluster < 0 else COLOURS[cluster % len(COLOURS)]
        marker = "o" if cluster < 0 else SHAPES[cluster % len(SHAPES)]
        style = {"s": size, "color": color, "marker": marker, "linewidths": 0, "alpha": 0.85}
        axis.scatter(*P[labels == cluster].T, **style)


def pairs(axis, P, known, width=2.0):
    """Draw must-links as solid green lines, cannot-links as dashed red ones."""
    for ends, style, color in (
        (known.must_link, "-", TOGETHER),
        (known.cannot_link, (0, (3, 2)), APART),
    ):
        for i, j in ends:
            axis.plot(*P[[i, j]].T, ls=style, color=color, lw=width, zorder=3)
            axis.plot(
                *P[[i, j]].T, "o", color=color, ms=2.5 * width, mec="white", mew=0.5, zorder=4
            )


def known_labels(axis, P, labels):
    """Ring the samples whose label is given."""
    given = np.flatnonzero(labels >= 0)
    colors = [COLOURS[label % len(COLOURS)] for label in labels[given]]
    axis.scatter(*P[given].T, s=90, c=colors, edgecolors=INK, linewidths=1.6, zorder=4)


def key(figure, **where):
    """Explain the two kinds of lines."""
    lines = [
        Line2D([], [], color=TOGETHER, lw=2.4, label="belong together (must-link)"),
        Line2D([], [], color=APART, lw=2.4, ls=(0, (3, 2)), label="do not (cannot-link)"),
    ]
    figure.legend(handles=lines, frameon=False, ncols=2, **where)


def save(figure, name, dpi=110):
    """Write docs/images/`name`.png with few colours, and close the figure."""
    raw = BytesIO()
    figure.savefig(raw, dpi=dpi, facecolor="white")
    plt.close(figure)
    path = IMAGES / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.open(raw).convert("RGB").quantize(N_COLOURS, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)
    print(f"{path.relative_to(IMAGES)}: {path.stat().st_size // 1024} kB")
