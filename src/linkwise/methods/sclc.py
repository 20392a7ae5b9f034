"""SCLC: normalised cut with linear constraints (Eriksson et al. 2007; Xu et al. 2009)."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from linkwise import metrics
from linkwise._params import StrOptions
from linkwise.exceptions import ConstraintsIgnoredWarning
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.methods.ncut import normalized_cut
from linkwise.partition import best_threshold, recursive_bisection, relabelled
from linkwise.result import Result
from linkwise.search.one_spectral import SignedGroups, linear_minimizer

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph, Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity


def sclc(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    rounding: str = "threshold",
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Cut a graph in two with every pair as a linear equation.

    .. math:: \min_x \; \frac{x^T L x}{x^T D x} \quad \text{s.t.} \quad x_i = x_j
       \text{ (must-link)}, \; x_i = -x_j \text{ (cannot-link)}, \; x^T D 1 = 0

    For two clusters `embedding` holds `x`, `eigenvalues` the minimum, and `residuals` that of the
    eigenproblem. More clusters are made by repeated halving, and each column of `embedding` is a
    split, zero outside of the part that it splits. `objective` is the normalised cut of the labels.
    With `rounding` ``"sign"`` the two sides are the signs of `x`.
    """
    rng = check_random_state(random_state)
    facts = _certain(constraints)
    if facts.is_empty and rounding != "sign":
        return normalized_cut(W, n_clusters, rng)
    if n_clusters == 2:
        cut = constrained_cut(W, signed_groups(facts), rng, rounding=rounding)
        return _result(W, relabelled(cut.labels), [(np.arange(W.shape[0]), cut)])
    halving = _Halving(W, facts, n_clusters, rounding=rounding, rng=rng)
    labels = recursive_bisection(W, n_clusters - 1, halving.split).labels
    labels = halving.last(labels)
    return _result(W, labels, halving.used(labels))


class _Halving:
    """Splits of parts of a graph under the constraints on them, each computed once."""

    def __init__(
        self,
        W: Graph,
        facts: Constraints,
        n_clusters: int,
        *,
        rounding: str = "threshold",
        rng: np.random.RandomState,
    ) -> None:
        self.W, self.facts, self.n_clusters = W, facts, n_clusters
        self.rounding, self.rng = rounding, rng
        self.cuts: dict[bytes, tuple[Ints, Cut]] = {}

    def split(self, part: Graph, members: Ints) -> Ints | None:
        """Return the two sides of a part, or None if must-links hold it together."""
        # In a part of three clusters or more, both samples of a cannot-link may be on one side:
        # only a part that is to become two clusters is split under its cannot-links.
        n_expected = members.size * self.n_clusters // self.W.shape[0]
        groups = signed_groups(self.facts.restrict(members), cannot_link=n_expected <= 2)
        groups = groups.without_contradictions()
        if np.ptp(groups.must) == 0:
            return None
        cut = constrained_cut(part, groups, self.rng, rounding=self.rounding)
        self.cuts[members.tobytes()] = members, cut
        return cut.labels

    def last(self, labels: Ints) -> Ints:
        """Make one more cluster: fewest violated cannot-links first, then the lowest cut."""
        candidates = []
        for cluster in range(int(labels.max()) + 1):
            members = np.flatnonzero(labels == cluster)
            known = self.cuts.get(members.tobytes())
            part = self.W[np.ix_(members, members)]
            sides = known[1].labels if known else self.split(part, members)
            if sides is not None:
                halved = labels.copy()
                halved[members[sides == 1]] = labels.max() + 1
                candidates.append(relabelled(halved))
        return min(
            candidates,
            key=lambda c: (self.facts.n_violated(c), metrics.ncut(self.W, c)),
            default=labels,
        )

    def used(self, labels: Ints) -> list[tuple[Ints, Cut]]:
        """Return the splits that were used: a part that was split for trial has one label."""
        return [(members, cut) for members, cut in self.cuts.values() if np.ptp(labels[members])]


def _certain(constraints: Constraints) -> Constraints:
    """Return the labels and the pairs of belief 1; warn if there are others."""
    n_uncertain = int((constraints.table.belief < 1).sum())
    if not n_uncertain:
        return constraints
    message = (
        f"Linear constraints are certain; {n_uncertain} pairs of belief below 1 are ignored. "
        "linkwise.SignedCSC weighs such pairs."
    )
    warnings.warn(message, ConstraintsIgnoredWarning, stacklevel=6)
    return constraints.certain


def _result(W: Graph, labels: Ints, cuts: list[tuple[Ints, Cut]]) -> Result:
    embedding = np.zeros((W.shape[0], len(cuts)))
    for column, (members, cut) in enumerate(cuts):
        embedding[members, column] = cut.x
    return Result(
        labels=labels,
        embedding=embedding,
        eigenvalues=np.array([cut.value for _, cut in cuts]),
        residuals=np.array([cut.residual for _, cut in cuts]),
        objective=metrics.ncut(W, labels),
        converged=all(cut.converged for _, cut in cuts),
    )


# --- the null space of the constraints


def signed_groups(constraints: Constraints, *, cannot_link: bool = True) -> SignedGroups:
    """Return the groups of samples that certain pairs and labels connect, and their signs.

    Every group of must-linked samples stands for two vertices, one a sign. A cannot-link connects
    each of them with the other sign of its other group: a connected component then holds one sign
    of each group, or both of them if the cannot-links contradict each other.
    """
    must = constraints.components()
    n = int(must.max()) + 1
    a, b = _apart(constraints, must).T if cannot_link else np.empty((2, 0), dtype=np.intp)
    edges = np.concatenate([a, a + n]), np.concatenate([b + n, b])
    double = csr_array((np.ones(edges[0].size), edges), shape=(2 * n, 2 * n))
    _, component = connected_components(double, directed=False)
    positive, negative = component[:n], component[n:]
    sign = np.sign(negative - positive).astype(np.float64)
    return SignedGroups(relabelled(np.minimum(positive, negative)[must]), sign[must], must)


def _apart(constraints: Constraints, must: Ints) -> Ints:
    """Return pairs of must-link groups that are cannot-linked, by pairs or labels."""
    certain = constraints.cannot_link_belief == 1
    pairs = must[constraints.cannot_link[certain]].reshape(-1, 2)
    if constraints.labels is None:
        return pairs
    known = constraints.labels >= 0
    classes = np.unique(must[known])
    # Three classes contradict each other in any case; the others need only be tied to them.
    tied = [(classes[0], other) for other in classes[1:]]
    if classes.size > 2:
        tied.append((classes[1], classes[2]))
    return np.concatenate([pairs, np.array(tied, dtype=np.intp).reshape(-1, 2)])


class Cut(NamedTuple):
    """The minimiser, its value, the certificate, and the two sides."""

    x: Floats
    value: float
    residual: float
    converged: bool
    labels: Ints


def constrained_cut(
    W: Graph, groups: SignedGroups, rng: np.random.RandomState, *, rounding: str = "threshold"
) -> Cut:
    """Minimise ``x' L x / x' D x`` under the linear constraints, and split `x`."""
    found = linear_minimizer(W, groups, rng)
    return Cut(*found, _sides(W, found.x, groups, rounding=rounding))


def _sides(W: Graph, x: Floats, groups: SignedGroups, *, rounding: str) -> Ints:
    """Split at zero, or at the threshold of the lowest normalised cut that keeps all constraints.

    A threshold keeps the must-links in any case, and the cannot-link ``x_i = -x_j`` if its
    magnitude is at most ``|x_i|``. Zero keeps all of them. Where `x` is zero the signs decide.
    """
    total, size = np.bincount(groups.group, weights=groups.sign), np.bincount(groups.group)
    has_both_signs = (np.abs(total) < size)[groups.group]
    opposite = has_both_signs & (groups.sign != 0)
    weighty = np.abs(x) > 0
    sides = x > 0
    if rounding == "threshold":
        least = np.abs(x[opposite & weighty]).min(initial=np.abs(x).max())
        found = best_threshold(W, np.clip(x, -least, least))
        # All the volume may be on one side of every threshold: then zero is as good as any.
        sides = found.labels == 1 if np.isfinite(found.objective) else sides
    sides = np.where(weighty | ~opposite, sides, groups.sign > 0)
    if sides.all() or not sides.any():
        # All samples have one value: the first group is a cluster of its own.
        sides = groups.must != groups.must[0]
    return sides.astype(np.intp)


class SCLC(ConstrainedClusterer):
    """Normalised cut with linear constraints (Eriksson et al., 2007; Xu, Li & Schuurmans, 2009).

    Must-linked samples have equal values, cannot-linked ones opposite values, in the very vector
    that is cut. Hard: with two clusters every certain pair and label holds. With more, must-links
    always hold; cannot-links are imposed only on parts that become two clusters.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters. More than two are made by repeated halving. Set it to the number that
        you expect.
    affinity
    rounding : {"threshold", "sign"}, default="threshold"
        Where the vector of a split is cut: at the threshold with the lowest normalised cut among
        those that satisfy the pairs, or at zero, by the signs of the papers. Take ``"sign"`` only
        to repeat the papers.
    random_state : int, RandomState instance or None, default=None
        Seed of the eigensolver's start. Give a number to get the same answer every time.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_clusters - 1)
        The vector of each split, zero outside of the part that it splits.

    Notes
    -----
    Linear equations are certain: pairs of belief below 1 are ignored, with a warning.

    References
    ----------
    A. Eriksson, C. Olsson, F. Kahl: Normalized cuts revisited: a reformulation for segmentation
    with linear grouping constraints. ICCV 2007.

    L. Xu, W. Li, D. Schuurmans: Fast normalized cut with linear constraints. CVPR 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import SCLC, Constraints
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> SCLC(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Eriksson et al. 2007"
    family = "constrained criterion"
    minimizes_cut = True
    max_clusters = MOST_EIGENVECTORS
    enforcement = "hard for two clusters"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rounding": [StrOptions({"threshold", "sign"})],
    }
    solve = staticmethod(sclc)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    rounding: str = "threshold"
    random_state: int | np.random.RandomState | None = None
