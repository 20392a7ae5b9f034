"""Pictures of clusterings and their constraints. Needs the extra ``plot`` (matplotlib)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import issparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.metrics.cluster import contingency_matrix

from linkwise._optional import require
from linkwise.graph import Prepared
from linkwise.partition import unit_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from linkwise._types import Floats, Ints
    from linkwise.constraints import Constraints

# Okabe & Ito's colours, which colour-blind people can tell apart; a shape per cluster as well.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
SHAPES = ("o", "s", "^", "D", "v", "P", "X", "*")
VIOLATED = "#D7263D"
MAX_DRAWN_PAIRS = 500  # more lines than that hide the data
FEW_PAIRS = 20  # more are drawn thinner
MOST_NAMED = 12  # clusters in the legend; more of them would hide the data


def positions(data: Prepared, embedding: Floats | None = None) -> Floats:
    """Return two coordinates of each sample.

    Parameters
    ----------
    data : Prepared
        Two features are taken as they are, more along their two principal axes. Of a graph
        without features the embedding is taken.
    embedding : ndarray of shape (n_samples, n_dims), default=None
        Coordinates that a method has found; by default eigenvectors of the graph.

    Returns
    -------
    ndarray of shape (n_samples, 2)
    """
    points: Any = data.X
    if data.is_graph and embedding is not None:
        points = embedding
    elif data.is_graph:
        k = min(3, data.n_samples)
        points = unit_rows(data.embedding(k, np.random.RandomState(0)).vectors)
    if points.shape[1] == 1:
        dense = points.toarray() if issparse(points) else points
        return np.column_stack((dense, np.zeros(len(dense))))
    if points.shape[1] == 2 and not issparse(points):
        return np.asarray(points)
    reduce = TruncatedSVD if issparse(points) else PCA
    flat: Floats = reduce(2, random_state=0).fit_transform(points)
    return flat


def draw_clusters(
    ax: Any,
    X: ArrayLike | Prepared,
    labels: ArrayLike,
    *,
    constraints: Constraints | None = None,
    title: str = "",
    legend_title: str = "",
) -> Any:
    """Draw samples in two dimensions, coloured by cluster, with the constraints over them.

    Must-links are solid lines, cannot-links dashed ones; violated ones are red.

    Parameters
    ----------
    ax : matplotlib Axes
        Where to draw.
    X : array-like of shape (n_samples, 2) or Prepared
        Positions: two features, or two columns of an embedding. Of a
        :class:`~linkwise.Prepared` the :func:`positions`.
    labels : array-like of shape (n_samples,)
        Cluster of each sample. Names, such as ``model.classes_[model.labels_]``, get a legend.
    constraints : Constraints, default=None
        Pairs to draw, the first 500 of each kind.
    title : str, default=""
        Title of the picture.
    legend_title : str, default=""
        If given, numbers of up to 12 clusters get a legend as well, under this title.

    Returns
    -------
    matplotlib Axes
    """
    X = positions(X) if isinstance(X, Prepared) else np.asarray(X)
    labels = np.asarray(labels)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(
            f"A picture needs two columns, but X has shape {X.shape}. "
            "Choose two features, or project the data first (for example with PCA)."
        )
    for number, cluster in enumerate(np.unique(labels)):
        ax.scatter(
            *X[labels == cluster].T,
            s=18,
            color=COLOURS[number % len(COLOURS)],
            # After all colours are used the shapes move on by one: 64 clusters look different.
            marker=SHAPES[(number + number // len(COLOURS)) % len(SHAPES)],
            label=str(cluster),
            linewidths=0,
            alpha=0.85,
        )
    if constraints is not None:
        _draw_pairs(ax, X, constraints, is_violated=constraints.is_violated(labels))
    n_clusters = np.unique(labels).size
    if labels.dtype.kind in "OUT" and n_clusters <= MOST_NAMED:
        ax.legend(fontsize=8)
    elif legend_title and 1 < n_clusters <= MOST_NAMED:
        ax.legend(fontsize=8, title=legend_title, title_fontsize=8)
    ax.set_title(title, fontsize=11)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set(visible=True, color="0.85")
    ax.set_aspect("equal", adjustable="datalim")
    return ax


def matched(labels: ArrayLike, reference: ArrayLike) -> Ints:
    """Return labels numbered like a reference, so that pictures of both have the same colours.

    Clusters get the numbers of the reference clusters with which they share most samples, one to
    one; clusters beyond those get the next free numbers.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Cluster of each sample.
    reference : array-like of shape (n_samples,)
        Another clustering of the same samples, or true classes.

    Returns
    -------
    ndarray of shape (n_samples,)
        The same clusters, as integers from 0 on.

    Examples
    --------
    >>> matched([7, 7, 3, 3], ["a", "b", "b", "b"]).tolist()
    [0, 0, 1, 1]
    """
    counts = contingency_matrix(labels, reference)
    clusters, classes = linear_sum_assignment(-counts)
    number = np.full(len(counts), -1)
    number[clusters] = classes
    number[number < 0] = counts.shape[1] + np.arange((number < 0).sum())
    return number[np.unique(labels, return_inverse=True)[1]]


def draw_side_by_side(
    X: ArrayLike | Prepared,
    clusterings: dict[str, ArrayLike],
    *,
    constraints: Constraints | None = None,
    legend_title: str = "",
) -> Any:
    """Draw several clusterings of the same data beside each other; titles are the keys.

    Parameters
    ----------
    X : array-like of shape (n_samples, 2) or Prepared
        Positions, as in :func:`draw_clusters`.
    clusterings : dict of str: array-like of shape (n_samples,)
        Labels by the title of their picture.
    constraints : Constraints or None, default=None
        Pairs to draw over the samples.
    legend_title : str, default=""
        Title of a legend of the clusters, as in :func:`draw_clusters`.

    Returns
    -------
    matplotlib Figure
        Not shown on any screen; save it with ``figure.savefig(path)``.
    """
    figure_module = require("matplotlib.figure", extra="plot", purpose="Drawing clusters")
    lines = require("matplotlib.lines", extra="plot", purpose="Drawing clusters")
    width = 4.2 * len(clusterings)
    figure = figure_module.Figure(figsize=(width, 4.6), dpi=150, layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(clusterings)))
    X = positions(X) if isinstance(X, Prepared) else X
    for ax, (title, labels) in zip(axes, clusterings.items(), strict=True):
        draw_clusters(
            ax, X, labels, constraints=constraints, title=title, legend_title=legend_title
        )
    if constraints is not None:
        kinds = {"must-link": "-", "cannot-link": "--"}
        handles = [lines.Line2D([], [], color="0.2", ls=ls, label=k) for k, ls in kinds.items()]
        if any(constraints.violated(labels).n_pairs for labels in clusterings.values()):
            handles.append(lines.Line2D([], [], color=VIOLATED, label="violated"))
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _draw_pairs(ax: Any, X: Any, constraints: Constraints, *, is_violated: Any) -> None:
    collections = require("matplotlib.collections", extra="plot", purpose="Drawing constraints")
    table = constraints.table
    for is_of_kind, style in ((table.is_must_link, "-"), (~table.is_must_link, "--")):
        drawn = np.flatnonzero(is_of_kind)[:MAX_DRAWN_PAIRS]
        colours = np.where(is_violated[drawn], VIOLATED, "0.2")
        widths = np.where(is_violated[drawn], 1.6, 1.4 if len(table.pairs) <= FEW_PAIRS else 0.7)
        lines = collections.LineCollection(
            X[table.pairs[drawn]], colors=colours, linestyles=style, linewidths=widths
        )
        ax.add_collection(lines)
