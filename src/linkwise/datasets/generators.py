"""Generators of data sets and graphs with a known truth.

Data sets come as `X` of shape (n_samples, n_features) and the true classes `y`, customers as a
table.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array, triu
from sklearn.utils import check_random_state

from linkwise.constraints import Constraints
from linkwise.constraints.sampling import unrank_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from linkwise._types import AnyArray, Bytes, Floats, Int64s, Ints

    RandomState = int | np.random.RandomState | None

CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
# One pixel down, up, right, left and along the diagonals: rows first.
SHIFTS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
# Of a class of `make_mixture`: its share of the points, its mean, its standard deviations.
MIXTURE = (
    (0.50, (0.0, 0.0), (3.0, 0.5)),
    (0.15, (-1.2, 3.2), (0.45, 0.45)),
    (0.15, (0.4, 3.2), (0.45, 0.45)),
    (0.20, (5.0, 4.0), (0.5, 0.5)),
)


class Segment(NamedTuple):
    """Customers of one kind: medians, shares, and what they mostly buy."""

    name: str
    share: float  # of all customers
    visits: float  # a month
    basket: float  # money a visit
    discount: float  # share of what they buy at a discount
    buys: tuple[float, float, float]  # probabilities of the categories


CATEGORIES = ("groceries", "fashion", "electronics")
SEGMENTS = (
    Segment("regulars", 0.45, 9.0, 70.0, 0.25, (0.75, 0.15, 0.10)),
    Segment("bargain hunters", 0.30, 4.0, 30.0, 0.60, (0.35, 0.50, 0.15)),
    Segment("big spenders", 0.25, 2.0, 220.0, 0.12, (0.05, 0.25, 0.70)),
)
# Older customers earn more and buy less online, whatever their segment is.
GENERATION = {"age": 13.0, "income": 0.21, "online": 0.23}


def make_customers(
    n_samples: int = 400, *, random_state: RandomState = None
) -> tuple[dict[str, AnyArray], Ints]:
    """Make a table of customers: two generations, and three segments that cut across them.

    The segments differ in how often customers come, what they spend, and what they buy. Age,
    income and the share bought online depend on the generation alone, and separate it more clearly
    than anything separates the segments: without constraints most methods find the generations.

    Parameters
    ----------
    n_samples : int, default=400
        Number of customers.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    table : dict of str to ndarray of shape (n_samples,)
        Columns: ``age`` (years), ``income`` (a year), ``visits`` (a month), ``basket`` (money a
        visit), ``discount`` and ``online`` (shares), ``category`` (texts), ``since`` (dates).
        ``pandas.DataFrame(table)`` is a data frame.
    y : ndarray of shape (n_samples,)
        Segment of each customer: 0 regulars, 1 bargain hunters, 2 big spenders; mixed.

    Examples
    --------
    >>> table, y = make_customers(6, random_state=0)
    >>> list(table)
    ['age', 'income', 'visits', 'basket', 'discount', 'online', 'category', 'since']
    >>> table["category"].tolist()[:2]
    ['electronics', 'groceries']
    """
    rng = check_random_state(random_state)
    ends = np.rint(n_samples * np.cumsum([one.share for one in SEGMENTS])).astype(np.intp)
    y = rng.permutation(np.searchsorted(ends, np.arange(n_samples), side="right")).astype(np.intp)
    of_segment = Segment(*(np.array(column)[y] for column in zip(*SEGMENTS, strict=True)))
    older = np.where(rng.random_sample(n_samples) < 0.5, 1.0, -1.0)

    def noise(scale: float) -> Floats:
        return rng.normal(scale=scale, size=n_samples)

    income = np.exp(10.5 + older * GENERATION["income"] + noise(0.22))
    bought = (rng.random_sample((n_samples, 1)) > np.cumsum(of_segment.buys, axis=1)).sum(axis=1)
    return {
        "age": np.clip(44 + older * GENERATION["age"] + noise(8.0), 18, 90).round(),
        "income": income.round(-2),
        "visits": np.maximum(of_segment.visits * np.exp(noise(0.35)), 0.1).round(1),
        "basket": (of_segment.basket * np.exp(noise(0.35))).round(2),
        "discount": np.clip(of_segment.discount + noise(0.12), 0, 1).round(2),
        "online": np.clip(0.5 - older * GENERATION["online"] + noise(0.15), 0, 1).round(2),
        "category": np.array(CATEGORIES)[np.minimum(bought, 2)],
        "since": np.datetime64("2026-01-01") - rng.randint(30, 3000, size=n_samples),
    }, y


def make_xor(
    n_per_corner: int = 10,
    *,
    spread: float = 0.04,
    random_state: RandomState = None,
) -> tuple[Floats, Ints]:
    """Make the XOR data of Xu et al. (2005): four tight corners, opposite ones belong together.

    Samples come corner by corner, counter-clockwise from the lower left, as the paper numbers
    them. With the default `n_per_corner` these are its 40 points.

    Parameters
    ----------
    n_per_corner : int, default=10
        Samples in each corner.
    spread : float, default=0.04
        How far samples are from their corner at most, in each direction.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (4 * n_per_corner, 2)
    y : ndarray of shape (4 * n_per_corner,)
        0 for the lower left and upper right corners, 1 for the other two.

    Examples
    --------
    >>> X, y = make_xor(random_state=0)
    >>> X.shape, y[[0, 10, 20, 30]].tolist()
    ((40, 2), [0, 1, 0, 1])
    """
    rng = check_random_state(random_state)
    corner = np.repeat(np.arange(4), n_per_corner)
    X = CORNERS[corner] + rng.uniform(-spread, spread, size=(corner.size, 2))
    return X, (corner % 2).astype(np.intp)


def make_moons(
    n_samples: int = 200, *, noise: float = 0.05, random_state: RandomState = None
) -> tuple[Floats, Ints]:
    """Make two interleaving half circles: scikit-learn's, with a little noise by default.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    noise : float, default=0.05
        Standard deviation of the noise.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Examples
    --------
    >>> X, y = make_moons(random_state=0)
    >>> X.shape, y.sum().item()
    ((200, 2), 100)
    """
    # Imported late: it brings in much that `import linkwise` can do without.
    from sklearn import datasets  # noqa: PLC0415

    X, y = datasets.make_moons(n_samples, noise=noise, random_state=random_state)
    return X, y.astype(np.intp)


def make_circles(
    n_samples: int = 200,
    *,
    noise: float = 0.04,
    factor: float = 0.5,
    random_state: RandomState = None,
) -> tuple[Floats, Ints]:
    """Make a circle around another: scikit-learn's, with a little noise by default.

    Class 0 is the outer circle, class 1 the inner one.

    Parameters
    ----------
    n_samples : int, default=200
        Number of samples.
    noise : float, default=0.04
        Standard deviation of the noise.
    factor : float, default=0.5
        Radius of the inner circle; the outer one has radius 1.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Examples
    --------
    >>> X, y = make_circles(noise=0, random_state=0)
    >>> sorted(set(np.linalg.norm(X, axis=1).round(6).tolist()))
    [0.5, 1.0]
    """
    from sklearn import datasets  # noqa: PLC0415

    X, y = datasets.make_circles(n_samples, noise=noise, factor=factor, random_state=random_state)
    return X, y.astype(np.intp)


def make_spirals(
    n_samples: int = 400,
    *,
    n_arms: int = 2,
    turns: float = 1.25,
    noise: float = 0.02,
    random_state: RandomState = None,
) -> tuple[Floats, Ints]:
    """Make spirals that wind around each other, one class an arm.

    Each arm runs from radius 0.25 to 1 with a radius that grows evenly with the angle. Points lie
    on it with a density that hardly changes along the arm. Samples come arm by arm, from the inside
    to the outside.

    Parameters
    ----------
    n_samples : int, default=400
        Number of points on all arms together.
    n_arms : int, default=2
        Number of classes.
    turns : float, default=1.25
        How often an arm goes around.
    noise : float, default=0.02
        Standard deviation of the noise of either coordinate. Neighbouring turns of two arms are
        ``0.75 / (turns * n_arms)`` apart.
    random_state : int, RandomState instance or None, default=None
        Seed of the positions and of the noise.

    Examples
    --------
    >>> X, y = make_spirals(300, n_arms=3, random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((300, 2), [100, 100, 100])
    """
    _check_blocks(n_samples, n_arms)
    rng = check_random_state(random_state)
    y = _even_labels(n_samples, n_arms)
    # One point in each of equal parts of an arm. Its length grows with the square of the radius.
    size = np.bincount(y)[y]
    place = np.concatenate([np.arange(count) for count in np.bincount(y)])
    part = (place + rng.uniform(size=n_samples)) / size
    radius = np.sqrt(0.25**2 + (1 - 0.25**2) * part)
    angle = 2 * np.pi * (turns * (radius - 0.25) / 0.75 + y / n_arms)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + rng.normal(scale=noise, size=X.shape), y


def make_mixture(n_samples: int = 500, *, random_state: RandomState = None) -> tuple[Floats, Ints]:
    """Make a mixture of Gaussians that a normalised cut gets wrong without constraints.

    After Figure 2 of Rangapuram and Hein (2012): 500 points in the plane of which the best cut
    into as many clusters as there are classes splits one class and puts two others together. The
    paper gives no parameters; these are ours: half of the points in a long class, 15 % each in two
    small classes beside each other, and the rest in one farther away. Samples come class by class.

    Class 0 is the one that is split, 1 and 2 are put together.

    Parameters
    ----------
    n_samples : int, default=500
        Number of samples.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Examples
    --------
    >>> X, y = make_mixture(random_state=0)
    >>> np.bincount(y).tolist()
    [250, 75, 75, 100]
    """
    rng = check_random_state(random_state)
    share, mean, deviation = (np.array(column) for column in zip(*MIXTURE, strict=True))
    ends = np.rint(n_samples * np.cumsum(share)).astype(np.intp)
    y = np.searchsorted(ends, np.arange(n_samples), side="right").astype(np.intp)
    return mean[y] + deviation[y] * rng.normal(size=(n_samples, 2)), y


def make_block_model(
    n_samples: int = 300,
    n_clusters: int = 3,
    *,
    p_in: float = 0.15,
    p_out: float = 0.02,
    random_state: RandomState = None,
) -> tuple[csr_array, Ints]:
    """Make a graph by the stochastic block model.

    Two vertices are joined with probability `p_in` if they belong to one block, else with
    `p_out`, independently of all others. Time and memory grow with the number of edges.

    Parameters
    ----------
    n_samples : int, default=300
        Number of vertices.
    n_clusters : int, default=3
        Number of blocks; they are of equal size, up to one vertex.
    p_in : float in [0, 1], default=0.15
        Probability of an edge inside a block.
    p_out : float in [0, 1], default=0.02
        Probability of an edge between two blocks.
    random_state : int, RandomState instance or None, default=None
        Seed of the edges.

    Returns
    -------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric, of zeros and ones, with an empty diagonal: for ``affinity="precomputed"``.
    y : ndarray of shape (n_samples,)
        Block of each vertex.

    Examples
    --------
    >>> W, y = make_block_model(6, 2, p_in=1, p_out=0)
    >>> W.toarray().astype(int).tolist()[0], y.tolist()
    ([0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1])
    """
    _check_blocks(n_samples, n_clusters)
    _check_probabilities(p_in=p_in, p_out=p_out)
    rng = check_random_state(random_state)
    y = _even_labels(n_samples, n_clusters)
    edges = _block_edges(y, (p_in, p_out), rng)
    return _symmetric(edges, np.ones(edges.shape[1]), n_samples), y


def make_signed_block_model(
    n_samples: int = 300,
    n_clusters: int = 3,
    *,
    density: float = 0.1,
    flipped: float = 0.1,
    random_state: RandomState = None,
) -> tuple[csr_array, Ints]:
    """Make a signed graph: friends in a block, foes between blocks, and some errors.

    Any two vertices are joined with probability `density`. The sign of an edge is positive inside
    a block and negative between two, and the opposite of that with probability `flipped`.

    The graphs of linkwise have no negative edges; what speaks against a pair is a constraint.
    `signed_parts` takes the graph apart into what a method wants.

    Parameters
    ----------
    n_samples : int, default=300
        Number of vertices.
    n_clusters : int, default=3
        Number of blocks; they are of equal size, up to one vertex.
    density : float in [0, 1], default=0.1
        Probability of an edge.
    flipped : float in [0, 1], default=0.1
        Probability that the sign of an edge is wrong.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric, of 1, -1 and unstored zeros.
    y : ndarray of shape (n_samples,)
        Block of each vertex.

    Examples
    --------
    >>> from linkwise import SignedCSC
    >>> from linkwise.metrics import adjusted_rand
    >>> W, y = make_signed_block_model(random_state=0)
    >>> graph, constraints = signed_parts(W)
    >>> model = SignedCSC(3, affinity="precomputed", random_state=0)
    >>> adjusted_rand(y, model.fit_predict(graph, constraints=constraints))
    1.0
    """
    _check_blocks(n_samples, n_clusters)
    _check_probabilities(density=density, flipped=flipped)
    rng = check_random_state(random_state)
    y = _even_labels(n_samples, n_clusters)
    i, j = edges = _block_edges(y, (density, density), rng)
    sign = np.where((y[i] == y[j]) != (rng.uniform(size=i.size) < flipped), 1.0, -1.0)
    return _symmetric(edges, sign, n_samples), y


def signed_parts(W: csr_array, *, belief: float = 0.99) -> tuple[csr_array, Constraints]:
    """Take a signed graph apart: its positive edges as a graph, the negative as cannot-links.

    The belief in a cannot-link is in proportion to the weight of its edge. `SignedCSC` puts the
    parts together again: if the heaviest edge is positive, it works with its defaults on
    one half of `W`, the negative weights times `belief`.

    Parameters
    ----------
    W : csr_array of shape (n_samples, n_samples)
        Symmetric weights of both signs; the diagonal does not count.
    belief : float in (0, 1], default=0.99
        Belief in an edge as heavy as the heaviest of either sign. With 1 such a cannot-link is a
        fact, and a graph with errors then most likely contradicts itself.

    Returns
    -------
    graph : csr_array of shape (n_samples, n_samples)
        The positive part.
    constraints : Constraints
        A cannot-link for each negative edge.

    Examples
    --------
    >>> W = csr_array([[0, 2.0, 0], [2, 0, -1], [0, -1, 0]])
    >>> graph, constraints = signed_parts(W)
    >>> graph.toarray().tolist()
    [[0.0, 2.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    >>> constraints.cannot_link.tolist(), constraints.cannot_link_belief.tolist()
    ([[1, 2]], [0.495])
    """
    graph = csr_array(W, dtype=np.float64, copy=True)
    graph.setdiag(0)
    graph.eliminate_zeros()
    upper = coo_array(triu(graph))
    negative = upper.data < 0
    heaviest = abs(graph).max() if graph.nnz else 1.0
    pairs = np.column_stack([upper.row, upper.col])[negative]
    beliefs = -upper.data[negative] / heaviest * belief
    graph.data[graph.data < 0] = 0
    graph.eliminate_zeros()
    return graph, Constraints(graph.shape[0], cannot_link=pairs, cannot_link_belief=beliefs)


def extend_by_shifts(images: NDArray[np.generic], shape: tuple[int, int]) -> NDArray[np.generic]:
    """Add each image moved by one pixel in 8 directions.

    This made the 630,000 images of MNIST (Ext) in Rangapuram and Hein (2012) from 70,000. What
    moves out of the frame is lost, what moves in is 0. The dtype stays, and besides the result
    nothing of its size is allocated: 494 MB for MNIST as bytes, 4 GB as float64.

    Parameters
    ----------
    images : ndarray of shape (n_samples, height * width)
        One image a row.
    shape : tuple of int
        Height and width.

    Returns
    -------
    ndarray of shape (9 * n_samples, height * width)
        All images as they are, then all of them moved down, up, right, left, down and right, down
        and left, up and right, up and left. Their labels are ``np.tile(y, 9)``.

    Examples
    --------
    >>> extend_by_shifts(np.array([[1, 2, 3, 4]], dtype=np.uint8), (2, 2))[:4].tolist()
    [[1, 2, 3, 4], [0, 0, 1, 2], [3, 4, 0, 0], [0, 1, 0, 3]]
    """
    images = np.asarray(images)
    height, width = shape
    if images.ndim != 2 or images.shape[1] != height * width:
        raise ValueError(
            f"images must have one row of {height} x {width} = {height * width} pixels a sample, "
            f"but their shape is {images.shape}."
        )
    n = images.shape[0]
    frames = images.reshape(n, height, width)
    extended = np.zeros((1 + len(SHIFTS), n, height, width), dtype=images.dtype)
    extended[0] = frames
    for moved, (down, right) in zip(extended[1:], SHIFTS, strict=True):
        to_rows, from_rows = _moved(down, height)
        to_columns, from_columns = _moved(right, width)
        moved[:, to_rows, to_columns] = frames[:, from_rows, from_columns]
    return extended.reshape(-1, height * width)


def make_shifted_digits() -> tuple[Bytes, Ints]:
    """Make a small relative of the extended MNIST from scikit-learn's digits.

    Returns
    -------
    X : ndarray of shape (16173, 64), of bytes
        The 1797 digits of 8 x 8 pixels (grey values 0 to 16) and their 8 one-pixel shifts.
    y : ndarray of shape (16173,)

    Examples
    --------
    >>> X, y = make_shifted_digits()
    >>> X.shape, X.dtype.name, y.size
    ((16173, 64), 'uint8', 16173)
    """
    from sklearn import datasets  # noqa: PLC0415

    images, y = datasets.load_digits(return_X_y=True)
    return shifted_images(images, y, (8, 8))


def shifted_images(
    X: NDArray[np.generic], y: NDArray[np.integer], shape: tuple[int, int]
) -> tuple[Bytes, Ints]:
    """Return images, as bytes, and their labels, extended by shifts."""
    extended = extend_by_shifts(X.astype(np.uint8, copy=False), shape)
    return extended.astype(np.uint8, copy=False), np.tile(y, 1 + len(SHIFTS)).astype(np.intp)


def _moved(step: int, size: int) -> tuple[slice, slice]:
    """Return where a line of pixels goes to and comes from when it moves by `step`."""
    return slice(max(step, 0), size + min(step, 0)), slice(max(-step, 0), size - max(step, 0))


def _check_blocks(n_samples: int, n_clusters: int) -> None:
    if not 1 <= n_clusters <= n_samples:
        raise ValueError(f"{n_samples} samples cannot be shared out among {n_clusters} clusters.")


def _check_probabilities(**given: float) -> None:
    for name, p in given.items():
        if not 0 <= p <= 1:
            raise ValueError(f"{name} must be a probability, between 0 and 1, but it is {p}.")


def _even_labels(n_samples: int, n_clusters: int) -> Ints:
    return (np.arange(n_samples, dtype=np.intp) * n_clusters) // n_samples


def _symmetric(edges: Ints, weight: Floats, n: int) -> csr_array:
    i, j = edges
    entries = np.concatenate([weight, weight]), (np.r_[i, j], np.r_[j, i])
    return csr_array(coo_array(entries, shape=(n, n)))


def _block_edges(y: Ints, p: tuple[float, float], rng: np.random.RandomState) -> Ints:
    """Draw the edges ``i < j`` among sorted blocks: of probability `p` inside and between."""
    start = np.searchsorted(y, np.arange(y[-1] + 2))
    edges = []
    for begin, end in pairwise(start.tolist()):
        size, later = end - begin, y.size - end
        inside = _bernoulli(size * (size - 1) // 2, p[0], rng)
        edges.append(begin + unrank_pairs(inside).T)
        # All later blocks at once: the pairs are a rectangle.
        between = _bernoulli(size * later, p[1], rng)
        if later:
            edges.append(np.stack([begin + between // later, end + between % later]))
    return np.concatenate(edges, axis=1).astype(np.intp)


def _bernoulli(n: int, p: float, rng: np.random.RandomState) -> Int64s:
    """Return which of `n` trials of probability `p` succeed, in time of the successes alone."""
    if n == 0 or p == 0:
        return np.empty(0, dtype=np.int64)
    if p == 1:
        return np.arange(n, dtype=np.int64)
    found, last = [], -1
    while last < n:
        # The number of trials up to the next success is geometric.
        wanted = int((n - last) * p + 4 * np.sqrt((n - last) * p) + 8)
        gaps = rng.geometric(p, size=wanted).astype(np.int64)
        # Where a gap is too long for an integer, there is no further success.
        gaps[(gaps < 1) | (gaps > n)] = n + 1
        found.append(last + np.cumsum(gaps, dtype=np.int64))
        last = int(found[-1][-1])
    position = np.concatenate(found)
    return position[position < n]
