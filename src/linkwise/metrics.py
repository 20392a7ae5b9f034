"""How good is a clustering: agreement with a truth, quality of the cut, broken constraints.

Scores over all points flatter a method that merely obeys: the constrained points are answers it
was given. Every score of agreement therefore takes ``outside=constraints`` and then looks at the
*free points* only, those in no constraint, as if the others did not exist.

Labels may be any integers or strings, in the truth and in the clustering; only equality counts.
In particular -1 is a label like any other: noise points are one cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, issparse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from linkwise._types import AnyArray, Bools, Floats, Ints, Matrix


__all__ = [
    "PairScores",
    "Violations",
    "accuracy",
    "adjusted_rand",
    "clustering_error",
    "cut",
    "ncut",
    "nmi",
    "pairwise_f",
    "rand_index",
    "rcut",
    "scores",
    "violated_count",
    "violated_share",
]


class ConstraintsLike(Protocol):
    """What is read of a :class:`linkwise.Constraints`."""

    @property
    def n_samples(self) -> int: ...
    @property
    def must_link(self) -> AnyArray: ...
    @property
    def cannot_link(self) -> AnyArray: ...
    @property
    def labels(self) -> AnyArray | None: ...
    @property
    def constrained(self) -> Bools: ...
    def satisfied(self, labels: ArrayLike, /) -> float: ...


if TYPE_CHECKING:
    Outside: TypeAlias = ConstraintsLike | ArrayLike | None
    Convention: TypeAlias = Literal["per_cluster", "one_vs_rest"]


class PairScores(NamedTuple):
    """Precision, recall and their harmonic mean for "these two belong together"."""

    precision: float
    recall: float
    f: float


class Violations(NamedTuple):
    """Numbers of broken pairs."""

    must_link: int
    cannot_link: int

    @property
    def total(self) -> int:
        """Broken pairs of both kinds."""
        return self.must_link + self.cannot_link


# ---------------------------------------------------------------------------------------------
# Agreement with a truth
# ---------------------------------------------------------------------------------------------


def accuracy(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Share of points in the right class, under the best one-to-one naming of the clusters.

    .. math:: \max_{\mathrm{map}} \frac1n \sum_i [\, y_i = \mathrm{map}(\ell_i) \,]

    (Wacquet et al. 2013, eq. 45-46), the naming found by the Hungarian method. With more
    clusters than classes some clusters have no name, and their points count as wrong.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_samples,)
        True classes and found clusters.
    outside : Constraints or array-like of bool of shape (n_samples,), optional
        Score only the points outside these constraints, or where this mask is False.

    Returns
    -------
    float
        Between 0 and 1; nan when there is no point to score.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], ["b", "b", "b", "a"])
    0.75
    """
    table = _Table.of(y_true, labels, outside)
    if table.n == 0:
        return np.nan
    counts = np.zeros((table.rows.size, table.columns.size))
    counts[table.row, table.column] = table.counts
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / table.n)


def clustering_error(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Share of points that are not of the majority class of their cluster.

    .. math:: 1 - \frac1n \sum_c \max_y |\{i : \ell_i = c, y_i = y\}|

    The error of Rangapuram & Hein (2012), section 6: what remains wrong after one label has
    been asked for each cluster. Several clusters may get the same class, so it falls to 0 when
    every point is its own cluster: compare equal numbers of clusters only.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_samples,)
        True classes and found clusters.
    outside : Constraints or array-like of bool of shape (n_samples,), optional
        Score only the points outside these constraints, or where this mask is False.

    Returns
    -------
    float
        Between 0 and 1, lower is better; nan when there is no point to score.

    Examples
    --------
    >>> clustering_error([0, 0, 1, 1], [0, 0, 0, 1])
    0.25
    """
    table = _Table.of(y_true, labels, outside)
    if table.n == 0:
        return np.nan
    majority = np.zeros(table.columns.size)
    np.maximum.at(majority, table.column, table.counts)
    return float((table.n - majority.sum()) / table.n)


def rand_index(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    """Share of all pairs on which the two partitions agree: together in both or in neither.

    Wacquet et al. 2013, eq. 47; equal to scikit-learn's ``rand_score``. High by chance when
    there are many classes; :func:`adjusted_rand` is not.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_samples,)
        True classes and found clusters.
    outside : Constraints or array-like of bool of shape (n_samples,), optional
        Score only the points outside these constraints, or where this mask is False.

    Returns
    -------
    float
        Between 0 and 1; 1 for a single point; nan when there is no point to score.

    Examples
    --------
    >>> rand_index([0, 0, 1, 1], [0, 0, 1, 2])
    0.8333333333333334
    """
    table = _Table.of(y_true, labels, outside)
    if table.n == 0:
        return np.nan
    both, only_true, only_found, neither = table.pairs()
    return _share(both + neither, both + only_true + only_found + neither)


def adjusted_rand(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    """Rand index corrected for chance: 0 for random partitions, 1 for equal ones.

    Hubert & Arabie (1985); equal to scikit-learn's ``adjusted_rand_score``.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_samples,)
        True classes and found clusters.
    outside : Constraints or array-like of bool of shape (n_samples,), optional
        Score only the points outside these constraints, or where this mask is False.

    Returns
    -------
    float
        Between -0.5 and 1; 1 when both partitions are one cluster, or both all singletons; nan
        when there is no point to score.

    Examples
    --------
    >>> round(adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.5714
    """
    table = _Table.of(y_true, labels, outside)
    if table.n == 0:
        return np.nan
    both, only_true, only_found, neither = table.pairs()
    if only_true == only_found == 0:
        return 1.0
    excess = 2 * (both * neither - only_true * only_found)
    span = (both + only_true) * (only_true + neither) + (both + only_found) * (only_found + neither)
    return excess / span


def nmi(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Mutual information of the two partitions over the mean of their entropies.

    .. math:: \frac{2\, I(y, \ell)}{H(y) + H(\ell)}

    Equal to scikit-learn's ``normalized_mutual_info_score``. Not corrected for chance: it grows
    with the number of clusters.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_samples,)
        True classes and found clusters.
    outside : Constraints or array-like of bool of shape (n_samples,), optional
        Score only the points outside these constraints, or where this mask is False.

    Returns
    -------
    float
        Between 0 and 1; 1 when both partitions are one cluster; nan when there is no point to
        score.

    Examples
    --------
    >>> round(nmi([0, 0, 1, 1], [0, 0, 1, 2]), 4)
    0.8
    """
    table = _Table.of(y_true, labels, outside)
    if table.n == 0:
        return np.nan
    if table.rows.size == table.columns.size == 1:
        return 1.0
    expected = table.rows[table.row] * (table.columns[table.column] / table.n)
    information = float((table.counts / table.n * np.log(table.counts / expected)).sum())
    entropies = _entropy(table.rows) + _entropy(table.columns)
    # Independent partitions leave a rounding error of either sign.
    return float(np.clip(2 * information / entropies, 0.0, 1.0))


def pairwise_f(y_true: ArrayLike, labels: ArrayLike, *, outside: Outside = None) -> PairScores:
    """Precision, recall and F of the relation "in one cluster" over all pairs.

    Of the pairs put together, the share that belongs together (precision); of the pairs that
    belong together, the share put together (recall); ``f`` is their harmonic mean. Counted from
    the contingency table, never pair by pair.

    Parameters
    ----------
    y_true, labels : array-like of shape (n_samples,)
        True classes and found clusters.
    outside : Constraints or array-like of bool of shape (n_samples,), optional
        Score only the points outside these constraints, or where this mask is False.

    Returns
    -------
    PairScores
        Each between 0 and 1. A share of no pairs is 1, as nothing is wrong in it; all are nan
        when there is no point to score.

    Examples
    --------
    >>> pairwise_f([0, 0, 1, 1], [0, 0, 1, 2])
    PairScores(precision=1.0, recall=0.5, f=0.6666666666666666)
    """
    table = _Table.of(y_true, labels, outside)
    if table.n == 0:
        return PairScores(np.nan, np.nan, np.nan)
    both, only_true, only_found, _ = table.pairs()
    return PairScores(
        precision=_share(both, both + only_found),
        recall=_share(both, both + only_true),
        f=_share(2 * both, 2 * both + only_true + only_found),
    )


class _Table(NamedTuple):
    """Contingency table, sparse: only pairs of class and cluster that occur are listed."""

    n: int
    row: Ints
    column: Ints
    counts: Ints
    rows: Ints  # points in each class
    columns: Ints  # points in each cluster

    @classmethod
    def of(cls, y_true: ArrayLike, labels: ArrayLike, outside: Outside) -> _Table:
        y_true, labels = _vector(y_true, "y_true"), _vector(labels, "labels")
        if y_true.size != labels.size:
            message = f"y_true has {y_true.size} entries, but labels has {labels.size}."
            raise ValueError(message)
        if outside is not None:
            free = ~_mask(outside, labels.size)
            y_true, labels = y_true[free], labels[free]
        classes, clusters = _codes(y_true, "y_true"), _codes(labels, "labels")
        n_clusters = clusters.max(initial=0) + 1
        cells, counts = np.unique(classes * n_clusters + clusters, return_counts=True)
        row, column = np.divmod(cells, n_clusters)
        return cls(labels.size, row, column, counts, np.bincount(classes), np.bincount(clusters))

    def pairs(self) -> tuple[int, int, int, int]:
        """Pairs together in both partitions, in the truth only, in the clusters only, in neither.

        Python's integers, because products of pair counts overflow 64 bits from 10^5 points on.
        """
        both, in_true, in_found = (
            int((sizes * (sizes - 1)).sum()) // 2
            for sizes in (self.counts, self.rows, self.columns)
        )
        all_pairs = self.n * (self.n - 1) // 2
        only_true, only_found = in_true - both, in_found - both
        return both, only_true, only_found, all_pairs - both - only_true - only_found


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _entropy(sizes: Ints) -> float:
    p = sizes / sizes.sum()
    return -float((p * np.log(p)).sum())


# ---------------------------------------------------------------------------------------------
# Quality of the cut
# ---------------------------------------------------------------------------------------------


def cut(W: Matrix, labels: ArrayLike, *, outside: Outside = None) -> float:
    r"""Total weight of the edges between clusters, each edge counted once.

    .. math:: \tfrac12 \sum_{\ell_i \ne \ell_j} w_{ij}

    Parameters
    ----------
    W : sparse or dense array of shape (n_samples, n_samples)
        Symmetric graph.
    labels : array-like of shape (n_samples,)
        Cluster of each vertex.
    outside : Constraints or mask, optional
        Score the graph among the free points alone: those outside every constraint.

    Returns
    -------
    float
        0 for a single cluster.

    Examples
    --------
    >>> cut(np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]]), [0, 0, 1])
    1.0
    """
    return float(_Cuts.of(W, labels, outside).cut.sum() / 2)


def ncut(
    W: Matrix,
    labels: ArrayLike,
    *,
    convention: Convention = "per_cluster",
    outside: Outside = None,
) -> float:
    r"""Normalised cut: what each cluster loses to the others, relative to its volume.

    .. math:: \sum_c \frac{\mathrm{cut}(c, V \setminus c)}{\mathrm{vol}(c)}, \qquad
       \mathrm{vol}(c) = \sum_{i \in c} \sum_j w_{ij} ,

    for two clusters and for many. It does not change when `W` is scaled, and lies between 0 and
    the number of clusters.

    Parameters
    ----------
    W : sparse or dense array of shape (n_samples, n_samples)
        Symmetric graph with non-negative weights.
    labels : array-like of shape (n_samples,)
        Cluster of each vertex.
    convention : {"per_cluster", "one_vs_rest"}, default="per_cluster"
        "one_vs_rest" is eq. 6 of Rangapuram & Hein (2012): the sum over clusters of the two-way
        normalised cut of each against all others,
        :math:`\mathrm{cut}(c, V \setminus c) / \mathrm{vol}(c) + \mathrm{cut}(c, V \setminus c)
        / \mathrm{vol}(V \setminus c)`. A larger number, and for two clusters exactly twice the
        other. The authors' program reports "per_cluster".
    outside : Constraints or mask, optional
        As in :func:`cut`.

    Returns
    -------
    float
        0 for a single cluster. A cluster without volume has no edge to lose and counts 0.

    Examples
    --------
    >>> W = np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]])
    >>> round(ncut(W, [0, 0, 1]), 4)  # 1 / 7 + 1 / 1
    1.1429
    """
    cuts = _Cuts.of(W, labels, outside)
    return _total_ratio(cuts.cut, cuts.volume, convention)


def rcut(
    W: Matrix,
    labels: ArrayLike,
    *,
    convention: Convention = "per_cluster",
    outside: Outside = None,
) -> float:
    r"""Ratio cut: what each cluster loses to the others, relative to its number of points.

    .. math:: \sum_c \frac{\mathrm{cut}(c, V \setminus c)}{|c|}

    Parameters
    ----------
    W : sparse or dense array of shape (n_samples, n_samples)
        Symmetric graph.
    labels : array-like of shape (n_samples,)
        Cluster of each vertex.
    convention : {"per_cluster", "one_vs_rest"}, default="per_cluster"
        As in :func:`ncut`.
    outside : Constraints or mask, optional
        As in :func:`cut`.

    Returns
    -------
    float
        0 for a single cluster. It scales with `W`.

    Examples
    --------
    >>> rcut(np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]]), [0, 0, 1])  # 1 / 2 + 1 / 1
    1.5
    """
    cuts = _Cuts.of(W, labels, outside)
    return _total_ratio(cuts.cut, cuts.size, convention)


class _Cuts(NamedTuple):
    """For each cluster: weight to the other clusters, sum of degrees, number of vertices."""

    cut: Floats
    volume: Floats
    size: Floats

    @classmethod
    def of(cls, W: Matrix, labels: ArrayLike, outside: Outside) -> _Cuts:
        codes = _codes(_vector(labels, "labels"), "labels")
        W = _graph(W, codes.size)
        if outside is not None:
            free = np.flatnonzero(~_mask(outside, codes.size))
            W, codes = W[free][:, free], np.unique(codes[free], return_inverse=True)[1]
        n_clusters = codes.max(initial=-1) + 1
        if issparse(W):
            row_codes = np.repeat(codes, np.diff(W.indptr))
            crossing = row_codes != codes[W.indices]
            lost = _sums(row_codes[crossing], W.data[crossing], n_clusters)
        else:
            # Sums of crossing entries, not volume minus inside: an empty cut is then exactly 0.
            members = (codes == c for c in range(n_clusters))
            lost = np.array([W[np.ix_(m, ~m)].sum() for m in members], dtype=float)
        volume = _sums(codes, np.asarray(W.sum(axis=1)).ravel(), n_clusters)
        return cls(lost, volume, np.bincount(codes).astype(float))


def _sums(codes: Ints, values: AnyArray, n_clusters: int) -> Floats:
    sums: Floats = np.bincount(codes, weights=values, minlength=n_clusters).astype(float)
    return sums


def _total_ratio(lost: Floats, weight: Floats, convention: str) -> float:
    total = _ratios(lost, weight).sum()
    if convention == "one_vs_rest":
        total += _ratios(lost, weight.sum() - weight).sum()
    elif convention != "per_cluster":
        message = f"convention must be 'per_cluster' or 'one_vs_rest', got {convention!r}."
        raise ValueError(message)
    return float(total)


def _ratios(lost: Floats, weight: Floats) -> Floats:
    ratios: Floats = np.divide(lost, weight, out=np.zeros(lost.shape), where=weight > 0)
    return ratios


# ---------------------------------------------------------------------------------------------
# Constraints
# ---------------------------------------------------------------------------------------------


def violated_count(constraints: ConstraintsLike, labels: ArrayLike) -> Violations:
    """Count the broken pairs: must-links separated, cannot-links together.

    Parameters
    ----------
    constraints : Constraints
        Pairs over the samples, whatever the belief in them. Partial labels count as the pairs
        they imply; a pair that is given and implied counts once.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    Violations
        `must_link` and `cannot_link`, and their sum as `total`.

    Examples
    --------
    >>> from linkwise.constraints import Constraints
    >>> c = Constraints(4, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 3)])
    >>> violated_count(c, [0, 0, 1, 0])
    Violations(must_link=1, cannot_link=1)
    """
    labels = _clusters(constraints, labels)
    must, cannot = constraints.must_link.T, constraints.cannot_link.T
    separated, together = labels[must[0]] != labels[must[1]], labels[cannot[0]] == labels[cannot[1]]
    known = constraints.labels
    if known is None:
        return Violations(int(separated.sum()), int(together.sum()))
    # Pairs that the labels imply are counted with them, by a contingency table, and not twice.
    separated &= (known[must[0]] != known[must[1]]) | (known[must[0]] < 0)
    together &= (known[cannot[0]] == known[cannot[1]]) | (known[cannot] < 0).any(axis=0)
    labelled = known >= 0
    _, split, joined, _ = _Table.of(known[labelled], labels[labelled], None).pairs()
    return Violations(int(separated.sum()) + split, int(together.sum()) + joined)


def violated_share(constraints: ConstraintsLike, labels: ArrayLike) -> float:
    r"""Share of the constraints that is broken, each weighted by its belief.

    .. math:: \sum_{(i,j) \text{ broken}} q_{ij} \Big/ \sum_{(i,j)} q_{ij}

    Parameters
    ----------
    constraints : Constraints
        Pairs over the samples, with their degrees of belief :math:`q`. Partial labels count as
        the pairs they imply, with belief 1.
    labels : array-like of shape (n_samples,)
        Cluster of each sample.

    Returns
    -------
    float
        Between 0 and 1; 0 when there is no constraint.
    """
    return 1.0 - constraints.satisfied(_clusters(constraints, labels))


def _clusters(constraints: ConstraintsLike, labels: ArrayLike) -> Ints:
    codes = _codes(_vector(labels, "labels"), "labels")
    _check_length(constraints.n_samples, codes.size, "The constraints are about")
    return codes


# ---------------------------------------------------------------------------------------------
# Everything at once
# ---------------------------------------------------------------------------------------------


def scores(
    y_true: ArrayLike | None,
    labels: ArrayLike,
    *,
    W: Matrix | None = None,
    constraints: ConstraintsLike | None = None,
) -> dict[str, float]:
    """Compute every score that what is given allows.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        True classes, if known.
    labels : array-like of shape (n_samples,)
        Found clusters.
    W : sparse or dense array of shape (n_samples, n_samples), optional
        Matrix, for the quality of the cut.
    constraints : Constraints, optional
        For broken constraints, and for the scores of free points.

    Returns
    -------
    dict
        Always `n_clusters`. With `y_true`: `accuracy`, `clustering_error`, `rand_index`,
        `adjusted_rand`, `nmi`, `pair_precision`, `pair_recall`, `pair_f`, and with constraints
        the same of the free points as `free_accuracy` ... and their number `n_free`. With `W`:
        `cut`, `ncut`, `rcut`, and with constraints those of the graph among the free points,
        `free_cut` ... With constraints: `violated_share`, `violated_must_link`,
        `violated_cannot_link`.

    Examples
    --------
    >>> scores(None, [0, 0, 1], W=np.array([[0, 3, 1], [3, 0, 0], [1, 0, 0]]))["rcut"]
    1.5
    """
    labels = _codes(_vector(labels, "labels"), "labels")
    found: dict[str, float] = {"n_clusters": np.unique(labels).size}
    if y_true is not None:
        y_true = _codes(_vector(y_true, "y_true"), "y_true")
        found |= _agreement(y_true, labels, None)
    if y_true is not None and constraints is not None:
        free = _agreement(y_true, labels, constraints)
        found |= {f"free_{name}": score for name, score in free.items()}
    if constraints is not None:
        broken = violated_count(constraints, labels)
        found["n_free"] = int((~np.asarray(constraints.constrained)).sum())
        found["violated_share"] = violated_share(constraints, labels)
        found["violated_must_link"] = broken.must_link
        found["violated_cannot_link"] = broken.cannot_link
    if W is not None:
        found |= {score.__name__: score(W, labels) for score in (cut, ncut, rcut)}
    if W is not None and constraints is not None:
        free_cuts = {
            f"free_{f.__name__}": f(W, labels, outside=constraints) for f in (cut, ncut, rcut)
        }
        found |= free_cuts
    return found


def _agreement(y_true: ArrayLike, labels: ArrayLike, outside: Outside) -> dict[str, float]:
    simple = (accuracy, clustering_error, rand_index, adjusted_rand, nmi)
    found = {score.__name__: score(y_true, labels, outside=outside) for score in simple}
    pairs = pairwise_f(y_true, labels, outside=outside)
    return found | {f"pair_{name}": score for name, score in pairs._asdict().items()}


# ---------------------------------------------------------------------------------------------
# Checks
# ---------------------------------------------------------------------------------------------


def _vector(values: ArrayLike, name: str) -> AnyArray:
    array = np.asarray(values)
    if array.ndim != 1:
        message = f"{name} must be one-dimensional, but has shape {array.shape}."
        raise ValueError(message)
    if array.dtype.kind == "f" and np.isnan(array).any():
        where = int(np.flatnonzero(np.isnan(array))[0])
        message = f"{name}[{where}] is nan. Leave out samples without a label."
        raise ValueError(message)
    return array


def _codes(array: AnyArray, name: str) -> Ints:
    """Replace labels by numbers from 0."""
    try:
        codes: Ints = np.unique(array, return_inverse=True)[1]
    except TypeError as error:
        kinds = ", ".join(sorted({type(label).__name__ for label in array.tolist()}))
        message = f"{name} mixes labels that cannot be compared ({kinds}). Use one type."
        raise ValueError(message) from error
    return codes


def _mask(outside: ConstraintsLike | ArrayLike, n_samples: int) -> Bools:
    """Return the points to leave out."""
    given = getattr(outside, "constrained", outside)
    mask = np.asarray(given)
    if mask.dtype != bool or mask.ndim != 1:
        message = (
            "outside must be Constraints, or a boolean mask that is True for the points to "
            f"leave out; got an array of type {mask.dtype} and shape {mask.shape}."
        )
        raise ValueError(message)
    _check_length(mask.size, n_samples, "outside is about")
    return mask


def _check_length(n_given: int, n_labels: int, about: str) -> None:
    if n_given != n_labels:
        message = f"{about} {n_given} samples, but labels has {n_labels} entries."
        raise ValueError(message)


def _graph(W: Matrix, n_labels: int) -> Matrix:
    W = csr_array(W) if issparse(W) else np.asarray(W)
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        message = f"W must be a square matrix, but has shape {W.shape}."
        raise ValueError(message)
    if W.shape[0] != n_labels:
        message = f"W is about {W.shape[0]} samples, but labels has {n_labels} entries."
        raise ValueError(message)
    return W
