"""Eigenvalues of the graph, and the plot of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._quiet import quiet
from linkwise.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.graph import Prepared
    from linkwise.linalg.eigen import EigenPairs
    from linkwise.report.inputs import Inputs


BEYOND = 5  # eigenvalues shown after the one that closes the clusters
# Numbers in the block of eigenvectors. One second on a kNN graph; beyond, a report would cost more
# than most fits.
LARGEST_BLOCK = 500_000
WIDTH, HEIGHT = 400.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 12.0, 14.0, 44.0


class Spectrum(NamedTuple):
    """Smallest eigenvalues of the normalised Laplacian, or why there are none."""

    values: Floats | None
    vectors: Floats | None
    n_components: int
    converged: bool
    of_graph: bool  # else of the matrix that the method made
    reason: str  # for what is missing; empty if nothing is


class EigenPlot(NamedTuple):
    """Geometry of the plot, in the units of its view box."""

    points: list[tuple[float, float, str]]
    ticks: list[tuple[float, str]]
    gap: tuple[float, float, float, float] | None  # x, y, width, height
    gap_size: float
    widest: int  # the widest gap of two clusters or more follows this eigenvalue; 0 for none


def graph_spectrum(inputs: Inputs, rng: np.random.RandomState) -> Spectrum:
    """Compute the smallest eigenvalues of the graph, unless that would cost more than the fit."""
    graph, n = inputs.graph, inputs.n_samples
    if graph is None:
        return _of_result(inputs, 0, "No graph was given.")
    n_components = int(graph.components.max()) + 1
    n_values = min(inputs.clusters.n_groups + BEYOND, n)
    if n * n_values > LARGEST_BLOCK:
        reason = (
            f"{n_values} eigenvectors of {n:,} samples were not computed: "
            "this would take longer than most fits."
        )
        return _of_result(inputs, n_components, reason)
    pairs = eigenpairs(graph, n_values, rng)
    values = np.maximum(1 - pairs.values, 0.0)
    return Spectrum(values, pairs.vectors, n_components, pairs.converged, of_graph=True, reason="")


def eigenpairs(graph: Prepared, k: int, rng: np.random.RandomState) -> EigenPairs:
    """Return the leading eigenpairs of the normalised adjacency, from the fit if it had any."""
    with quiet(ConvergenceWarning):  # the report says so
        return graph.embedding(k, rng)


def _of_result(inputs: Inputs, n_components: int, reason: str) -> Spectrum:
    result = inputs.result
    values = None if result is None else result.eigenvalues
    converged = result is None or result.converged
    return Spectrum(values, None, n_components, converged, of_graph=False, reason=reason)


def eigen_plot(values: Floats, n_clusters: int) -> EigenPlot | None:
    """Lay out the eigenvalues and the gap after the last cluster; None for fewer than two."""
    m = values.size
    if m < 2 or not np.isfinite(values).all():
        return None
    low, high = min(0.0, float(values.min())), float(values.max())
    high = high if high > low else low + 1.0
    step = _round_step((high - low) / 4)
    marks = np.arange(np.ceil(low / step), np.floor(high / step + 1e-9) + 1) * step

    def x(position: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (position + 0.5) / m, 2)

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low), 2)

    points = [(x(i), y(value), f"{value:.4g}") for i, value in enumerate(values.tolist())]
    ticks = [(y(mark), f"{mark:.4g}") for mark in (marks + 0.0).tolist()]
    gaps = np.diff(values)
    gap, gap_size = None, 0.0
    if n_clusters < m:
        top, bottom = points[n_clusters][1], points[n_clusters - 1][1]
        gap_size = float(gaps[n_clusters - 1])
        gap = (LEFT, min(top, bottom), WIDTH - LEFT - RIGHT, round(abs(bottom - top), 2))
    widest = int(gaps[1:].argmax()) + 2 if m > 2 else 0
    return EigenPlot(points, ticks, gap, gap_size, widest)


def _round_step(wanted: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least `wanted`."""
    power = 10.0 ** np.floor(np.log10(wanted))
    return float(power * next(f for f in (1, 2, 5, 10) if f * power >= wanted * (1 - 1e-9)))
