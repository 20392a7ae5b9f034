"""CSC: constrained spectral clustering under local proximity (Xu, desJardins & Wagstaff 2005)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state

from linkwise._params import Interval, StrOptions
from linkwise.constraints.table import constraint_matrix
from linkwise.linalg.sparse import canonical_format, largest_entry, moved_entries
from linkwise.methods._base import MOST_EIGENVECTORS, ConstrainedClusterer
from linkwise.methods.ncut import normalized_cut

if TYPE_CHECKING:
    import numpy as np

    from linkwise._types import Graph
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.linalg.warm import WarmStarts
    from linkwise.result import Result


def csc(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    link_weight: float | str = "max",
    rows: str = "unit",
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
    warm: WarmStarts | None = None,
) -> Result:
    """Write the constraints into the affinities `A`, then cluster by the random walk on them.

    The embedding are the leading eigenvectors of ``P = D^-1 A``. These are ``D^-1/2 z`` for the
    eigenvectors `z` of the symmetric ``D^-1/2 A D^-1/2``, so a symmetric solver finds them.
    """
    A = edit(W, constraints, link_weight)
    rng = check_random_state(random_state)
    enforced = constraints if hard else None
    return normalized_cut(A, n_clusters, rng, rows=rows, enforced=enforced, warm=warm)


def edit(W: Graph, constraints: Constraints, link_weight: float | str = "max") -> Graph:
    """Move the affinity of every must-link to full weight, of every cannot-link to zero.

    A pair of belief `b` moves by the share `b` of the way: ``(1 - b) w + b target``. Sparse graphs
    stay sparse: only the constrained pairs are added.
    """
    if constraints.is_empty:
        return W
    if issparse(W):
        W = canonical_format(csr_array(W))
    return moved_entries(W, constraint_matrix(constraints), link_affinity(W, link_weight))


def link_affinity(W: Graph, link_weight: float | str) -> float:
    """Return the affinity that a certain must-link stands for.

    The papers write 1, for affinities in [0, 1]. The largest affinity of the graph is the same
    and does not change its meaning when the graph is measured in other units.
    """
    if link_weight == "degree":
        return float(W.sum()) / W.shape[0]
    return largest_entry(W) if link_weight == "max" else float(link_weight)


class CSC(ConstrainedClusterer):
    """Constrained spectral clustering by affinity editing (Xu, desJardins & Wagstaff, 2005).

    A must-link sets the affinity of its pair to the maximum, a cannot-link to zero; then the
    random walk on the edited graph is clustered. It works well when each sample belongs to the
    cluster of its nearest neighbours, even if a cluster lies in several distant places.

    Parameters
    ----------
    n_clusters
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``. The paper's own graph is
        ``Affinity(neighbors=None, scale="xu")``. Change it to repeat the paper.
    link_weight : float, "max" or "degree", default="max"
        Affinity of a certain must-link: the largest of the graph, the mean degree (a strong
        link), or a number. The paper writes 1, the maximum of its Gaussian affinities. Take
        ``"degree"`` if must-links are not strong enough.
    rows : {"unit", "raw"}, default="unit"
        Whether the rows of the embedding are scaled to length one before k-means, as in the other
        methods, or taken as they are, as in the paper. Take ``"raw"`` only to repeat the paper.
    hard
    random_state

    References
    ----------
    Q. Xu, M. desJardins, K. Wagstaff: Constrained spectral clustering under a local proximity
    structure assumption. FLAIRS 2005.

    Examples
    --------
    Four corners; opposite corners belong together, as two must-links state.

    >>> from linkwise import CSC, Affinity, Constraints
    >>> from linkwise.datasets import make_xor
    >>> X, y = make_xor(random_state=0)
    >>> known = Constraints(40, must_link=[(0, 20), (10, 30)])
    >>> model = CSC(2, affinity=Affinity(None, scale="xu"), random_state=0)
    >>> labels = model.fit_predict(X, constraints=known)
    >>> bool((labels == y).all())
    True
    """

    paper = "Xu et al. 2005"
    family = "affinity editing"
    minimizes_cut = True
    is_distributed = True
    max_clusters = MOST_EIGENVECTORS
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "link_weight": [StrOptions({"max", "degree"}), Interval(Real, 0, None, closed="neither")],
        "rows": [StrOptions({"unit", "raw"})],
    }
    solve = staticmethod(csc)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    link_weight: float | str = "max"
    rows: str = "unit"
    hard: bool = False
    random_state: int | np.random.RandomState | None = None
