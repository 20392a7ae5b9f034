"""GPAffinity: the affinity as a Gaussian process that has seen the pairs (AP)."""

from __future__ import annotations

from dataclasses import KW_ONLY
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import solve
from scipy.sparse import block_diag, coo_array, csr_array, eye_array
from sklearn.utils import check_random_state

from linkwise._params import Interval
from linkwise.constraints.table import constraint_matrix
from linkwise.exceptions import TooLargeError
from linkwise.linalg import eigen
from linkwise.linalg.laplacian import signed, symmetric_components
from linkwise.linalg.lowrank import values_on
from linkwise.linalg.sparse import largest_entry, moved_entries
from linkwise.methods._propagation import (
    PropagationClusterer,
    constrained_samples,
    dense,
    is_exact,
    pattern_with_pairs,
)
from linkwise.methods.ncut import normalized_cut

if TYPE_CHECKING:
    from linkwise._types import Floats, Graph
    from linkwise.constraints import Constraints
    from linkwise.graph import Affinity
    from linkwise.result import Result

# Connected constrained samples have a dense system of their own: 2 GB, two minutes at this size.
MAX_CONSTRAINED = 10_000


def gp_affinity(
    W: Graph,
    constraints: Constraints,
    n_clusters: int,
    *,
    noise: float = 0.01,
    solver: str = "auto",
    hard: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> Result:
    r"""Take the affinities for the covariance of a random function, and let it see the pairs.

    A must-link is the observation :math:`f_i - f_j = 0`; with two clusters, a cannot-link is
    :math:`f_i + f_j = 0`. With these combinations in the columns of `M`, the covariance becomes

    .. math:: K - K M (M^T K M + \Lambda)^{-1} M^T K,

    and its off-diagonal entries, where positive, are the new affinities. With more clusters a
    cannot-link sets its affinity to zero afterwards.
    """
    rng = check_random_state(random_state)
    Y = constraint_matrix(constraints)
    if Y.nnz:
        exact = is_exact(W, solver)
        # K without its diagonal: the affinities in units of a function's variance
        K = W / covariance_shift(W, rng)
        # M Lambda^-1 M'. With more than two clusters, "not equal" is no linear statement about f.
        observed = Y if n_clusters == 2 else Y.maximum(0)
        B = link_precision(csr_array(observed), noise)
        # The covariance given the pairs
        W = _conditioned_dense(K, Y, B) if exact else _conditioned(csr_array(K), Y, B)
        if n_clusters > 2:
            W = moved_entries(W, csr_array(Y.minimum(0)), 0.0)
    enforced = constraints if hard else None
    return normalized_cut(W, n_clusters, rng, enforced=enforced)


def covariance_shift(W: Graph, rng: np.random.RandomState) -> float:
    """Return the variance that makes `W` a covariance when it is put on the diagonal.

    A Gaussian affinity has its maximum, 1, there. Affinities of a neighbour graph may need more
    to be positive semidefinite: minus their lowest eigenvalue.
    """
    lowest = eigen.smallest(W, 1, rng)
    return max(largest_entry(W), float(lowest.residuals[0] - lowest.values[0]))


def link_precision(Y: csr_array, noise: float) -> csr_array:
    """Return ``M Lambda^-1 M'``, what the pairs add to the inverse of the covariance.

    It is the signed Laplacian of the pairs. A certain pair is seen with the variance `noise`, in
    units of the diagonal of the covariance, one of belief `b` with ``noise + 1 / b - 1``.
    """
    belief = np.abs(Y.data)
    weights = np.sign(Y.data) * belief / (noise * belief + np.maximum(1 - belief, 0))
    return csr_array(signed(csr_array((weights, Y.indices, Y.indptr), shape=Y.shape)))


def posterior_part(K_CC: Floats, B_CC: Floats) -> Floats:
    """Return ``T = (I + B K)^-1 B``: the covariance loses ``K_:C T K_C:``.

    The same as ``M (M' K M + Lambda)^-1 M'``, over the constrained samples instead of the pairs,
    of which there may be many more.
    """
    A = B_CC @ K_CC
    A[np.diag_indices_from(A)] += 1
    T = solve(A, B_CC, overwrite_a=True, check_finite=False)
    return (T + T.T) / 2


def _conditioned_dense(W: Graph, Y: csr_array, B: csr_array) -> Floats:
    C = constrained_samples(Y)
    K = dense(W)
    K[np.diag_indices_from(K)] = 1.0
    T = posterior_part(K[np.ix_(C, C)], B[C][:, C].toarray())
    posterior = K - K[:, C] @ T @ K[C]
    posterior = np.maximum((posterior + posterior.T) / 2, 0)
    np.fill_diagonal(posterior, 0.0)
    return posterior


def _conditioned(W: csr_array, Y: csr_array, B: csr_array) -> csr_array:
    C = constrained_samples(Y)
    near = csr_array((W + eye_array(W.shape[0], format="csr"))[:, C])
    T = posterior_blocks(csr_array(near[C]), csr_array(B[C][:, C]))
    pattern = pattern_with_pairs(W, Y, near)
    pattern.data = np.maximum(pattern.data - values_on(near, T, pattern), 0)
    return csr_array(pattern + pattern.T)


def posterior_blocks(K_CC: csr_array, B_CC: csr_array) -> csr_array:
    """Return `posterior_part` of sparse matrices, sparse: one block for each connected set.

    Samples that are in no observed pair have no part in it. The others fall into sets that neither
    pairs nor affinities connect, few samples each where the pairs are few among many samples.
    """
    seen = np.flatnonzero(np.diff(B_CC.indptr))
    K, B = csr_array(K_CC[seen][:, seen]), csr_array(B_CC[seen][:, seen])
    _, component = symmetric_components(csr_array(abs(K) + abs(B)))
    order = np.argsort(component, kind="stable")
    sizes = np.bincount(component)
    _check_n_connected(int(sizes.max(initial=0)))
    K, B = csr_array(K[order][:, order]), csr_array(B[order][:, order])
    ends = np.cumsum(sizes)
    blocks = [
        posterior_part(K[a:b, a:b].toarray(), B[a:b, a:b].toarray())
        for a, b in zip(ends - sizes, ends, strict=True)
    ]
    T = block_diag(blocks, format="coo") if blocks else coo_array(K.shape)
    place = seen[order]
    return csr_array((T.data, (place[T.row], place[T.col])), shape=K_CC.shape)


def _check_n_connected(n_connected: int) -> None:
    if n_connected > MAX_CONSTRAINED:
        raise TooLargeError(
            f"{n_connected} connected samples are constrained; a Gaussian process can see at most "
            f"{MAX_CONSTRAINED}. Give fewer pairs or labels, or take linkwise.E2CP."
        )


class GPAffinity(PropagationClusterer):
    """Affinities conditioned on the pairs as a Gaussian process (Lu & Carreira-Perpinan, 2008).

    The affinities are taken for the covariance of a random function on the samples, which takes
    equal values at must-linked samples and, with two clusters, opposite ones at cannot-linked
    samples. The covariance given this is the new affinity, and is clustered. Soft: it trades the
    cut against the constraints.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters. With more than two, cannot-links only remove the affinity of their
        own pair; must-links have their full effect. Set it to the number that you expect.
    affinity
    noise : float, default=0.01
        Variance with which a certain pair is observed, in units of the function's own variance.
        Raise it if pairs may be wrong; it hardly matters between 1e-4 and 0.1.
    solver
    hard
    random_state

    References
    ----------
    Z. Lu, M. A. Carreira-Perpinan: Constrained spectral clustering through affinity propagation.
    CVPR 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import Constraints, GPAffinity
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> known = Constraints(6, must_link=[(0, 2)], cannot_link=[(2, 3)])
    >>> GPAffinity(2, random_state=0).fit_predict(X, constraints=known).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    paper = "Lu & Carreira-Perpinan 2008"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "noise": [Interval(Real, 1e-10, None, closed="left")],
    }
    solve = staticmethod(gp_affinity)

    n_clusters: int = 2
    _: KW_ONLY
    affinity: Affinity | str | None = None
    noise: float = 0.01
    solver: str = "auto"
    hard: bool = False
    random_state: int | np.random.RandomState | None = None
