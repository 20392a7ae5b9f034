"""Pictures of learning curves. Needs the extra ``plot`` (matplotlib)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise import plots
from linkwise._optional import require

if TYPE_CHECKING:
    from linkwise.evaluate.table import Curves

COLOURS = tuple(colour for colour in plots.COLOURS if colour != "#F0E442")  # yellow lines are faint
COLUMNS = 3  # pictures beside each other


def draw_curves(curves: Curves, metric: str = "adjusted_rand", *, spread: str = "sem") -> Any:
    """Draw the mean of a score over the number of constraints: a picture a data set.

    An open marker stands for a mean over fewer draws than there were.

    Parameters
    ----------
    curves : Curves
        What :func:`learning_curve` returned.
    metric : str, default="adjusted_rand"
        The score to draw.
    spread : {"sem", "std", "quartiles", "none"}, default="sem"
        What the band around a curve shows: the standard error of the mean, the standard
        deviation, the range from the first quartile to the third, or nothing.

    Returns
    -------
    matplotlib Figure
        Not shown on any screen; save it with ``figure.savefig(path)``.
    """
    if spread not in {"sem", "std", "quartiles", "none"}:
        raise ValueError(f"spread must be 'sem', 'std', 'quartiles' or 'none', got {spread!r}.")
    module = require("matplotlib.figure", extra="plot", purpose="Drawing curves")
    summary = curves.summary(metric)
    names = list(dict.fromkeys(line["data"] for line in summary))
    n_rows, n_columns = math.ceil(len(names) / COLUMNS), min(len(names), COLUMNS)
    size = (4.4 * n_columns, 3.6 * n_rows + 0.5)
    figure = module.Figure(figsize=size, dpi=150, layout="constrained")
    axes = np.atleast_1d(figure.subplots(n_rows, n_columns, squeeze=False)).ravel()
    for ax, name in zip(axes, names, strict=False):
        _draw_data(ax, [line for line in summary if line["data"] == name], spread)
        ax.set_title(name, fontsize=11)
        ax.set_xlabel(_what(curves))
        ax.set_ylabel(metric.replace("_", " "))
    for ax in axes[len(names) :]:
        ax.set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def _draw_data(ax: Any, lines: list[dict[str, Any]], spread: str) -> None:
    methods = dict.fromkeys(line["method"] for line in lines)
    for number, method in enumerate(methods):
        curve = [line for line in lines if line["method"] == method]
        colour = COLOURS[number % len(COLOURS)]
        shape = plots.SHAPES[(number + number // len(COLOURS)) % len(plots.SHAPES)]
        x = np.array([line["amount"] for line in curve])
        y = np.array([line["mean"] for line in curve])
        few = np.array([line["n"] < line["n_draws"] for line in curve])
        ax.plot(x, y, color=colour, marker=shape, markersize=4, linewidth=1.4, label=method)
        ax.plot(x[few], y[few], shape, color=colour, markersize=4, markerfacecolor="white")
        if spread == "quartiles":
            low, high = ([line[q] for line in curve] for q in ("q25", "q75"))
        elif spread != "none":
            half = np.array([line[spread] for line in curve])
            low, high = y - half, y + half
        if spread != "none":
            ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _what(curves: Curves) -> str:
    kind = curves.settings.get("kind", "")
    named = {"pairs": "pairs", "per_class": "labels per class"}
    labels = {"labels": "labels", "stratified": "labels"}
    return f"number of {(named | labels).get(kind, 'constraints')}"
