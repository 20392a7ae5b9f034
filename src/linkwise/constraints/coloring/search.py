"""The graph of cannot-links between groups, its core, and proper colourings guided by costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise._jit import late_module
from linkwise._quiet import quiet
from linkwise.constraints.coloring import kernels

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from linkwise._types import Bools, Floats, Int32s, Int64s, Ints

sparse = late_module("scipy.sparse")  # takes 0.2 s to import
dense = late_module("scipy.linalg")
arpack = late_module("scipy.sparse.linalg")

sklearn_cluster = late_module("sklearn.cluster")  # take a second to import
sklearn_exceptions = late_module("sklearn.exceptions")

ANNEALING_SWEEPS = 1_000  # of the second guess
GUESS_ROUNDS = 10  # greedy colourings that follow a guess
GUESS_TABU_STEPS = 1_000_000
ROUNDS, TABU_STEPS = 60, 200_000  # of a guided colouring
STEPS_PER_VERTEX = 5_000  # of the tabu search, at the most
DENSE_SPECTRUM = 400  # vertices up to which all eigenvectors are computed


class CannotLinkGraph(NamedTuple):
    """Cannot-links between groups: symmetric rows, sorted, without loops and duplicates."""

    indptr: Int64s
    indices: Int32s

    @property
    def n_groups(self) -> int:
        """The number of vertices."""
        return self.indptr.size - 1


def graph_of(pairs: Ints, n_groups: int) -> CannotLinkGraph:
    """Return the graph of distinct pairs (a, b) with a < b, sorted."""
    low, high = pairs.T
    # scipy keeps the order in each row: smaller neighbours come first, in the order of the pairs.
    places = np.concatenate((high, low)), np.concatenate((low, high))
    data = np.ones(2 * low.size, np.int8)
    return _unweighted(sparse.coo_array((data, places), shape=(n_groups, n_groups)).tocsr())


def _unweighted(graph: csr_array) -> CannotLinkGraph:
    indptr = graph.indptr.astype(np.int64, copy=False)
    return CannotLinkGraph(indptr, graph.indices.astype(np.int32, copy=False))


def pairs_of(graph: CannotLinkGraph) -> Ints:
    """Return the edges (a, b) with a < b, sorted."""
    heads = np.repeat(np.arange(graph.n_groups), np.diff(graph.indptr))
    upper = heads < graph.indices
    return np.column_stack((heads[upper], graph.indices[upper])).astype(np.intp)


def subgraph(graph: CannotLinkGraph, kept: Bools) -> tuple[Int32s, CannotLinkGraph]:
    """Return the vertices that are kept, and the graph on them, renumbered."""
    vertices = np.flatnonzero(kept).astype(np.int32)
    shape = (graph.n_groups, graph.n_groups)
    data = np.ones(graph.indices.size, np.int8)
    whole = sparse.csr_array((data, graph.indices, graph.indptr), shape=shape)
    return vertices, _unweighted(whole[vertices][:, vertices])


class Peeling(NamedTuple):
    """The vertices that may be hard to colour, and the order in which the others came off."""

    core: Bools
    order: Int32s  # to be coloured in reverse


def peel(graph: CannotLinkGraph, n_colors: int) -> Peeling:
    """Remove vertices with fewer than `n_colors` neighbours, again and again.

    Coloured last and in reverse order, each of them finds a colour. So only the core that
    remains can lack a colouring; if it is empty, there is one for certain.
    """
    degree = np.diff(graph.indptr)
    if (degree < n_colors).all():  # the usual case
        return Peeling(np.zeros(degree.size, np.bool_), np.arange(degree.size, dtype=np.int32))
    return Peeling(*kernels.peel_below(*graph, n_colors))


class Coloring(NamedTuple):
    """A colour for each vertex; no two neighbours share one."""

    colors: Int32s  # -1 where none was found
    n_left: int  # how many are -1


def guided_coloring(
    graph: CannotLinkGraph,
    cost: Floats,
    rng: np.random.RandomState,
    *,
    peeling: Peeling | None = None,
    rounds: int = ROUNDS,
    tabu_steps: int = TABU_STEPS,
) -> Coloring:
    """Look for a proper colouring of low total cost.

    Colours the core greedily (see `kernels.dsatur`), at most `rounds` times: vertices that find no
    colour become more urgent each time. At last a tabu search starts from the best attempt (about a
    microsecond a step); only that draws from `rng`. Peeled vertices follow in reverse order, each
    in its cheapest allowed colour. `cost` is finite, of shape (n_groups, n_colors). If there are at
    least as many vertices as colours, every colour is in use.
    """
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    if peeling is None:
        peeling = peel(graph, cost.shape[1])
    colors = colored(graph, cost, rng, peeling=peeling, rounds=rounds, tabu_steps=tabu_steps)
    kernels.fill_empty(cost, colors)
    return Coloring(colors, int((colors < 0).sum()))


def colored(
    graph: CannotLinkGraph,
    cost: Floats,
    rng: np.random.RandomState,
    *,
    peeling: Peeling,
    rounds: int,
    tabu_steps: int,
) -> Int32s:
    """Colour the core first, then the peeled vertices; a colour may stay unused."""
    colors = np.full(graph.n_groups, -1, dtype=np.int32)
    if peeling.order.size < graph.n_groups:
        vertices, inner = subgraph(graph, peeling.core)
        core = color_core(inner, cost[vertices], rng, rounds=rounds, tabu_steps=tabu_steps)
        colors[vertices] = core.colors
    kernels.color_peeled(*graph, peeling.order, cost, colors)
    return colors


class CoreColoring(NamedTuple):
    """A colouring of a core, and where it is hard to colour."""

    colors: Int32s
    n_left: int
    pressure: Int64s  # how often a vertex was left without a colour


def color_core(
    graph: CannotLinkGraph,
    cost: Floats,
    rng: np.random.RandomState,
    *,
    rounds: int,
    tabu_steps: int,
    start: Int32s | None = None,
) -> CoreColoring:
    """Colour a graph by repeated DSATUR and then by tabu search.

    `start` is a guess, not necessarily proper, that the tabu search repairs if it is better; it
    is changed.
    """
    failures = np.zeros(graph.n_groups, dtype=np.int64)
    best, best_left = np.full(graph.n_groups, -1, dtype=np.int32), graph.n_groups
    if start is not None:
        best, best_left = start, kernels.drop_conflicts(*graph, start)
    for _ in range(max(1, rounds)):
        colors, n_left = kernels.dsatur(*graph, cost, failures)
        if n_left < best_left:
            best, best_left = colors, n_left
        if n_left == 0:
            break
        # "Squeaky wheel" (Joslin and Clements, 1999): what failed comes earlier next time, even
        # before hubs. To weigh its regret instead was not enough around large groups.
        failures += colors < 0
    if best_left and tabu_steps > 0:
        # A small graph has been tried in all ways long before.
        steps = min(tabu_steps, STEPS_PER_VERTEX * graph.n_groups)
        best, best_left, ejections = kernels.partial_col(
            *graph, best.copy(), cost.shape[1], steps, _seed(rng)
        )
        failures += ejections
    return CoreColoring(best, best_left, failures)


# The full search ---------------------------------------------------------------------------


def find_coloring(
    graph: CannotLinkGraph,
    n_colors: int,
    rng: np.random.RandomState,
    *,
    cost: Floats | None = None,
) -> Coloring:
    """Look for a proper colouring by all means short of exhaustive search.

    Tries `guided_coloring` first, with random costs unless given. If some vertices are left, it
    guesses the colours from the cannot-links alone: a planted colouring shows in the most negative
    eigenvectors of their graph (Alon and Kahale, 1997), as it is and after annealing. If ``n_left``
    is not 0, there may still be a colouring.
    """
    if cost is None:
        cost = rng.random_sample((graph.n_groups, n_colors))
    peeling = peel(graph, n_colors)
    best = guided_coloring(graph, cost, rng, peeling=peeling)
    if best.n_left == 0 or n_colors < 3:  # for two colours the first attempt is exact
        return best
    vertices, core = subgraph(graph, peeling.core)
    guess = _spectral_guess(core, n_colors, rng)
    for sweeps, steps in ((0, TABU_STEPS), (ANNEALING_SWEEPS, GUESS_TABU_STEPS)):
        kernels.anneal(*core, guess, n_colors, sweeps, _seed(rng))
        found = color_core(
            core,
            1.0 - np.eye(n_colors)[guess],
            rng,
            rounds=GUESS_ROUNDS,
            tabu_steps=steps,
            start=guess.copy(),
        )
        if found.n_left < best.n_left:
            colors = np.full(graph.n_groups, -1, dtype=np.int32)
            colors[vertices] = found.colors
            kernels.color_peeled(*graph, peeling.order, cost, colors)
            kernels.fill_empty(cost, colors)
            best = Coloring(colors, int((colors < 0).sum()))
        if best.n_left == 0:
            break
    return best


def _spectral_guess(graph: CannotLinkGraph, n_colors: int, rng: np.random.RandomState) -> Int32s:
    """Guess colours from the most negative eigenvectors of the normalised adjacency."""
    n = graph.n_groups
    scale = 1.0 / np.sqrt(np.diff(graph.indptr))  # a core has no isolated vertices
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    weights = scale[rows] * scale[graph.indices]
    adjacency = sparse.csr_array((weights, graph.indices, graph.indptr), shape=(n, n))
    n_vectors = min(n_colors - 1, n - 1)
    if n <= DENSE_SPECTRUM or n_vectors >= n - 1:
        vectors = dense.eigh(adjacency.toarray(), subset_by_index=[0, n_vectors - 1])[1]
    else:
        start = rng.uniform(-1.0, 1.0, n)
        try:
            vectors = arpack.eigsh(
                adjacency, n_vectors, which="SA", v0=start, tol=1e-3, maxiter=3_000
            )[1]
        except arpack.ArpackNoConvergence as error:  # a guess may be rough
            vectors = error.eigenvectors
    if vectors.shape[1] == 0 or n < n_colors:
        return rng.randint(n_colors, size=n).astype(np.int32)
    points = vectors * scale[:, None]
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(lengths > 0, lengths, 1.0)
    # Fewer distinct points than colours are no reason to complain about a guess.
    with quiet(sklearn_exceptions.ConvergenceWarning):
        model = sklearn_cluster.KMeans(n_colors, n_init=3, random_state=_seed(rng)).fit(points)
    return model.labels_.astype(np.int32)


def _seed(rng: np.random.RandomState) -> int:
    """Draw a seed for a kernel."""
    return int(rng.randint(2**31 - 1))
