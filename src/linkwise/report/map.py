"""The map: two coordinates and some values of each sample, in few bytes of the page."""

from __future__ import annotations

import base64
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA

from linkwise.partition import unit_rows
from linkwise.report.numbers import separation, stratified, unit_scale
from linkwise.report.palette import looks
from linkwise.report.spectrum import eigenpairs
from linkwise.report.values import shown_values

if TYPE_CHECKING:
    from linkwise._types import AnyArray, Floats, Ints
    from linkwise.report.inputs import Inputs, Partition
    from linkwise.report.pairs import Drawn
    from linkwise.report.spectrum import Spectrum

    Placement: TypeAlias = tuple[str, str, Floats]  # name, what it is, coordinates


MAX_POINTS = 100_000  # on the map; more are sampled
MAX_STATIC_POINTS = 2_000  # in the picture for browsers without scripts
MAX_SHAPE = 3.0  # longer side over shorter side; beyond, the shorter one is stretched
IDS_BUDGET = 1_600_000  # bytes of identifiers in the page; with 100,000 points it stays below 3 MB
SHORT_ID = 60  # characters of an identifier on the map
MANY_POINTS = 50_000  # beyond, only the two best views fit into the page
LEAST_PER_FEATURE = 10  # samples: with fewer, directions that separate any clusters can be found
MAX_LEARNT = 20_000  # samples that discriminants are learnt from
FAMILIAR = 0.1  # of silhouette: what another view must be better than two features as they are
CLEARLY_APART = 0.5  # of silhouette
PREFERRED = ("Features", "Principal axes", "Differences", "Embedding", "Graph")
LAST = 65_535  # the largest 16-bit number
STATIC_WIDTH = 1_000


class View(NamedTuple):
    """One way to place the samples: coordinates in [0, 1], the second one downwards."""

    name: str
    about: str
    xy: Floats
    width: float  # of the box, of which the longer side is 1
    height: float


class Map(NamedTuple):
    """The samples that are drawn, and their views."""

    chosen: Ints  # samples on the map, ascending
    views: list[View]
    is_sampled: bool
    has_ids: bool  # identifiers are shown; else row numbers

    def positions(self, n_samples: int) -> Ints:
        """Return the place of each sample on the map; -1 if it is not there."""
        found = np.full(n_samples, -1, dtype=np.intp)
        found[self.chosen] = np.arange(self.chosen.size)
        return found


class StaticMap(NamedTuple):
    """A picture of a sample, for a page without scripts."""

    width: int
    height: int
    paths: list[tuple[int, str]]  # cluster, its points
    lines: list[tuple[bool, bool, str]]  # must-link, violated, path
    n_points: int


# Coordinates -------------------------------------------------------------------------------


def draw_map(
    inputs: Inputs, spectrum: Spectrum, drawn: Drawn, *, rng: np.random.RandomState
) -> Map | None:
    """Place the samples in every way that the input allows; None if it allows none."""
    placed = _best_first(_placements(inputs, spectrum, rng), inputs, rng)
    if not placed:
        return None
    wanted = np.zeros(inputs.n_samples, dtype=bool)
    wanted[drawn.pairs.ravel()] = True
    wanted[drawn.ringed] = True
    chosen = stratified(inputs.clusters.codes, MAX_POINTS, rng, wanted=wanted)
    if chosen.size > MANY_POINTS:
        placed = placed[:2]
    views = [_view(name, about, points[chosen]) for name, about, points in placed]
    names = [] if inputs.ids is None else [inputs.ids[sample] for sample in chosen.tolist()]
    n_bytes = sum(len(_short(name).encode()) + 3 for name in names)  # quotes and a comma
    has_ids = bool(names) and n_bytes <= IDS_BUDGET
    return Map(chosen, views, chosen.size < inputs.n_samples, has_ids)


def _best_first(
    placed: list[Placement], inputs: Inputs, rng: np.random.RandomState
) -> list[Placement]:
    """Sort views by how well clusters are apart in them; the first one is shown first.

    Beyond some point, better means only that clusters shrink to dots. Then what is nearest to the
    data comes first.
    """
    placed = sorted(placed, key=lambda one: PREFERRED.index(one[0]))
    scores = [
        separation(points, inputs.clusters, rng) + (FAMILIAR if name == "Features" else 0.0)
        for name, _, points in placed
    ]
    order = np.argsort(-np.minimum(scores, CLEARLY_APART), kind="stable").tolist()
    return [placed[at] for at in order]


def _placements(inputs: Inputs, spectrum: Spectrum, rng: np.random.RandomState) -> list[Placement]:
    placed: list[Placement] = []
    X, result = inputs.X, inputs.result
    if spectrum.vectors is not None:
        leading = spectrum.vectors[:, : max(inputs.clusters.n_groups, 3)]
        placed.append(_spectral(leading, rng))
    elif result is not None and result.embedding is not None:
        about = "the coordinates in which the method saw the samples, along their two main axes"
        placed.append(("Embedding", about, _two_axes(result.embedding, rng)))
    elif inputs.graph is not None and X is None:
        pairs = eigenpairs(inputs.graph, min(3, inputs.n_samples), rng)
        placed.append(_spectral(pairs.vectors, rng))
    if X is not None and X.shape[1] == 2:
        # Two features are a map already, and the one that their owner knows.
        points = np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)
        placed.insert(0, ("Features", "the two features as they are", points))
    elif X is not None:
        about = "the two directions in which the data vary most (principal components)"
        placed.append(("Principal axes", about, _two_axes(X, rng)))
        placed += _discriminant(X, inputs.clusters, rng)
    return placed


def _discriminant(X: Any, clusters: Partition, rng: np.random.RandomState) -> list[Placement]:
    """Project on the directions in which the clusters differ most, if there are enough samples."""
    n, d = X.shape
    if issparse(X) or not 1 < clusters.n_groups < n / 2 or d * LEAST_PER_FEATURE > n:
        return []
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: PLC0415

    some = stratified(clusters.codes, MAX_LEARNT, rng)
    X = unit_scale(X)
    model = LinearDiscriminantAnalysis()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of columns that repeat each other: they add nothing
        try:
            axes = model.fit(X[some], clusters.codes[some]).transform(X)[:, :2]
        except (ValueError, np.linalg.LinAlgError):  # nothing varies within clusters
            return []
    if not np.isfinite(axes).all() or not axes.size:
        return []
    if axes.shape[1] == 1:  # of two clusters: beside it, the direction of most variance
        axes = np.column_stack((axes, _two_axes(X, rng)[:, 0]))
    about = "the directions in which the clusters differ most (linear discriminants)"
    return [("Differences", about, axes)]


def _spectral(vectors: Floats, rng: np.random.RandomState) -> Placement:
    about = (
        f"the {vectors.shape[1]} leading eigenvectors of the graph, rows scaled to length one, "
        "along their two main axes: samples are near if the graph connects them well"
    )
    return "Graph", about, _two_axes(unit_rows(vectors), rng)


def _two_axes(X: Any, rng: np.random.RandomState) -> Floats:
    """Project on the two principal axes; missing ones are zero."""
    n_axes = min(2, *X.shape)
    if issparse(X) and min(X.shape) <= 3:
        X = X.toarray()
    X = unit_scale(X)
    solver = "arpack" if issparse(X) else "auto"
    with np.errstate(invalid="ignore", divide="ignore"):  # shares of no variance at all
        points = PCA(n_axes, svd_solver=solver, random_state=rng).fit_transform(X)
    padded = np.zeros((points.shape[0], 2))
    padded[:, :n_axes] = points
    return padded


def _view(name: str, about: str, points: Floats) -> View:
    """Bring coordinates to the unit square; keep proportions unless one side is very long."""
    low = points.min(axis=0)
    # Halves, so that the span of huge coordinates stays finite.
    half = points.max(axis=0) / 2 - low / 2
    longest = half.max()
    if longest == 0:
        return View(name, about, np.full(points.shape, 0.5), 1.0, 1.0 / MAX_SHAPE)
    spread = np.where(half > 0, half, 1.0)
    unit = (points / 2 - low / 2) / spread
    unit[:, half == 0] = 0.5
    unit[:, 1] = 1 - unit[:, 1]
    shape = half / longest
    stretch = float(1 / MAX_SHAPE / shape.min()) if 0 < shape.min() < 1 / MAX_SHAPE else 1.0
    if stretch >= 1.05:
        side = "vertical" if shape[1] < shape[0] else "horizontal"
        about = f"{about}; the {side} axis is stretched {stretch:.3g} times"
    width, height = np.maximum(shape, 1 / MAX_SHAPE).tolist()
    return View(name, about, np.clip(unit, 0.0, 1.0), width, height)


# Into the page -----------------------------------------------------------------------------


def map_data(inputs: Inputs, drawn: Drawn, made: Map) -> dict[str, Any]:
    """Return what the script of the page reads, to be written as JSON."""
    k = inputs.clusters.n_groups
    width = 1 if k <= 256 else 2 if k <= 65_536 else 4
    position = made.positions(inputs.n_samples)
    ends = position[drawn.pairs]
    inside = (ends >= 0).all(axis=1)
    pairs = np.column_stack((ends, drawn.is_must, drawn.is_broken))[inside]
    ringed = position[drawn.ringed]
    ids = None
    if made.has_ids:
        ids = [_short(inputs.id_of(sample)) for sample in made.chosen.tolist()]
    return {
        "views": [
            {
                "xy": _encoded(np.rint(view.xy * LAST), "<u2"),
                "width": view.width,
                "height": view.height,
            }
            for view in made.views
        ],
        "labels": _encoded(inputs.clusters.codes[made.chosen], f"<u{width}"),
        "labelBytes": width,
        "clusters": [
            {"name": _short(name), "light": look.light, "dark": look.dark, "shape": look.shape}
            for name, look in zip(inputs.clusters.names, looks(k), strict=True)
        ],
        "rows": _encoded(made.chosen, "<u4") if made.is_sampled else None,
        "ids": ids,
        "pairs": pairs.ravel().tolist(),
        "ringed": ringed[ringed >= 0].tolist(),
        "values": shown_values(inputs.features, made.chosen),
    }


def _short(text: str) -> str:
    return text if len(text) <= SHORT_ID else text[:SHORT_ID] + "…"


def _encoded(numbers: AnyArray, dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, dtype=dtype).tobytes()).decode("ascii")


def static_map(inputs: Inputs, drawn: Drawn, made: Map, *, rng: np.random.RandomState) -> StaticMap:
    """Draw the first view of at most about 2,000 samples as paths."""
    view = made.views[0]
    codes = inputs.clusters.codes[made.chosen]
    some = stratified(codes, MAX_STATIC_POINTS, rng)
    width, height = (round(STATIC_WIDTH * side) for side in (view.width, view.height))
    xy = np.rint(view.xy * (width, height)).astype(np.intp)
    paths = []
    for cluster in np.unique(codes[some]).tolist():
        members = xy[some[codes[some] == cluster]].tolist()
        # A line of no length with round ends is a dot.
        paths.append((cluster, "".join(f"M{x} {y}h0" for x, y in members)))
    position = made.positions(inputs.n_samples)
    lines = []
    for is_must in (True, False):
        for is_broken in (False, True):
            wanted = (drawn.is_must == is_must) & (drawn.is_broken == is_broken)
            ends = position[drawn.pairs[wanted]]
            ends = ends[(ends >= 0).all(axis=1)]
            segments = np.concatenate((xy[ends[:, 0]], xy[ends[:, 1]]), axis=1).tolist()
            if segments:
                path = "".join(f"M{a} {b}L{c} {d}" for a, b, c, d in segments)
                lines.append((is_must, is_broken, path))
    return StaticMap(width, height, paths, lines, some.size)
