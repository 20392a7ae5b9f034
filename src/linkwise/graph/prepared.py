"""Prepared: samples, their graph and what solvers found, set up once and shared by many fits."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, validate_data

from linkwise._inputs import check_foreign, checked_format, checked_numbers, missing_in
from linkwise.graph import storage
from linkwise.graph.affinity import Affinity
from linkwise.graph.frames import checked_frame
from linkwise.graph.precomputed import check_affinity
from linkwise.linalg.embedding import spectral_embedding
from linkwise.linalg.laplacian import degrees, symmetric_components
from linkwise.linalg.warm import WarmStarts, nbytes

if TYPE_CHECKING:
    import os

    from linkwise._types import Floats, Graph, Ints
    from linkwise.linalg.eigen import EigenPairs


class Prepared:
    """Data ready for many fits: the graph is built once, and solvers start where they ended.

    Pass it to the `fit` of any method in place of the data. The first fit pays for the graph and
    the eigenvectors; a fit with other constraints, or of another method, begins from them.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The data; or, with ``affinity="precomputed"``, the graph.
    affinity : Affinity, "precomputed" or None, default=None
        How the graph is built; None means ``Affinity()``.

    Attributes
    ----------
    X : ndarray, csr_array or csr_matrix
        The data, checked.
    source : object
        The data as they were given.
    feature_names : ndarray of str or None
        Names of the features, if the data are a frame with names.
    W : csr_array or ndarray of shape (n_samples, n_samples)
        The graph, built when it is first needed.
    is_graph : bool
        Whether the data are a precomputed graph.
    affinity_ : Affinity or None
        The fitted graph builder; None for a precomputed graph, and before the graph is built.
    degrees : ndarray of shape (n_samples,)
        Sum of the weights at each sample.
    components : ndarray of shape (n_samples,)
        Connected component of each sample, numbered from 0.
    warm : linkwise.linalg.warm.WarmStarts
        Where the solvers of the next fit start.
    attached : dict
        What describes the data beside these, by its class; methods keep it here.

    Notes
    -----
    The answer of a fit is the one without preparation up to the tolerance of the eigensolver: the
    solver stops as soon as its start is good enough. Do not change the data in place.

    Beside the graph it holds, for each kind of eigenproblem, the last vectors (``8 k`` bytes a
    sample) and an order of the samples, and for each damping of a propagation the columns of the
    constrained samples, at most 10 million entries unless a single fit has more.

    Several threads may fit one `Prepared` at the same time. The graph and the embedding are
    computed by one of them, the others wait.

    Examples
    --------
    >>> import numpy as np
    >>> from linkwise import CSC, Constraints, NCut, Prepared
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> data = Prepared(X)
    >>> known = Constraints(6, must_link=[(0, 2)])
    >>> CSC(2, random_state=0).fit(data, constraints=known).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> NCut(2, random_state=0).fit(data).labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> print(data)  # doctest: +NORMALIZE_WHITESPACE
    Prepared data of 6 samples
    X                                    6 x 1                48 bytes
    W                                 15 edges               388 bytes
    degrees                                                   48 bytes
    embedding                        2 vectors                96 bytes
    warm: adjacency                  2 vectors                 0 bytes
    total                                                    580 bytes
    """

    is_distributed = False  # whether samples and graph are on other machines
    _where = ""  # what to say of that
    # Of a subset of larger data: those of its samples that would be drawn of all
    drawn: Ints | None = None

    def __init__(self, X: Any, affinity: Affinity | str | None = None) -> None:
        check_foreign(X)
        if hasattr(X, "columns"):
            X = checked_frame(X)
        options = {"accept_sparse": "csr", "dtype": np.float64, "input_name": "X"}
        try:
            with checked_numbers():
                checked = check_array(checked_format(X), ensure_min_samples=2, **options)
        except (ValueError, TypeError) as error:
            if str(error).startswith("Input X contains") or "NAType" in str(error):
                raise ValueError(missing_in(X)) from error
            raise
        if isinstance(affinity, str):
            if affinity != "precomputed":
                message = f'affinity is an Affinity, "precomputed" or None, not {affinity!r}.'
                raise ValueError(message)
            checked = check_affinity(checked)
        names = BaseEstimator()  # scikit-learn reads the names of the features from many frames
        validate_data(names, X, skip_check_array=True)
        self.source = X
        self._set_up(checked, affinity)
        self.feature_names: Any = getattr(names, "feature_names_in_", None)

    def _set_up(self, checked: Any, affinity: Affinity | str | None) -> None:
        """Set everything to how it is before the graph is built."""
        self.X = checked
        self.n_samples = int(checked.shape[0])
        self.feature_names = None
        self.affinity = affinity
        self.is_graph = isinstance(affinity, str)  # precomputed
        self.affinity_: Affinity | None = None
        self.warm = WarmStarts()
        self._W: Any = checked if isinstance(affinity, str) else None
        self._degrees: Floats | None = None
        self._components: Ints | None = None
        self._embedding: EigenPairs | None = None
        self.attached: dict[type, Any] = {}
        self._lock = RLock()

    @classmethod
    def of(cls, X: Any, affinity: Affinity | str | None = None) -> Prepared:
        """Return prepared data: `X` itself if it is prepared already.

        Raises
        ------
        ValueError
            If `X` is prepared with another affinity than the one asked for.
        """
        if not isinstance(X, cls):
            return cls(X, affinity)
        if affinity is not None and not _is_same(affinity, X.affinity):
            raise ValueError(
                f"affinity={affinity!r} was asked for, but the data are prepared with "
                f"affinity={X.affinity!r}. Give it to Prepared(X, affinity=...) and leave it out "
                "elsewhere."
            )
        return X

    @property
    def W(self) -> Graph:  # noqa: N802  (a matrix, as everywhere)
        """The graph, built when it is first needed."""
        if self._W is None:
            with self._lock:
                if self._W is None:  # no other thread was faster
                    builder = Affinity() if self.affinity is None else clone(self.affinity)
                    W = builder.fit_transform(self.X)
                    self.affinity_, self._W = builder, W  # in this order, for other threads
        graph: Graph = self._W
        return graph

    @property
    def has_graph(self) -> bool:
        """Whether the graph is built already."""
        return self._W is not None

    def set_graph(self, W: Graph) -> None:
        """Take a graph that was built elsewhere, of the same samples in the same order."""
        self._W = W

    @property
    def degrees(self) -> Floats:
        """Sum of the weights at each sample."""
        if self._degrees is None:
            self._degrees = degrees(self.W)
        return self._degrees

    @property
    def components(self) -> Ints:
        """Connected component of each sample, numbered from 0."""
        if self._components is None:
            self._components = symmetric_components(self.W)[1]
        return self._components

    def embedding(self, k: int, rng: np.random.RandomState) -> EigenPairs:
        """Return the `k` leading eigenpairs of the normalised adjacency of the graph.

        They are computed once; fewer pairs later are the first ones of these. See
        :func:`linkwise.linalg.embedding.spectral_embedding`.

        Parameters
        ----------
        k : int
            Number of pairs.
        rng : RandomState
            Source of the start vectors. As much is drawn from it if the pairs are there already.
        """
        with self._lock:
            found = self._embedding
            # With k components or more the last vectors differ for every k, and cost nothing.
            if found is None or found.values.size < k or k <= self.components.max() + 1:
                found = spectral_embedding(self.W, k, rng, d=self.degrees, warm=self.warm.adjacency)
                self._embedding = found if found.converged else None
                return found
        rng.randint(2**31)  # what the solver would have drawn
        return replace(
            found,
            values=found.values[:k],
            vectors=found.vectors[:, :k],
            residuals=found.residuals[:k],
        )

    def cold(self) -> Prepared:
        """Return the same data and graph without what solvers have found.

        Fits on it do not depend on earlier ones: their labels can be reproduced, and their times
        compared.
        """
        other = copy(self)
        other.warm, other._embedding, other.attached = WarmStarts(), None, {}
        return other

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the data, the graph, the embedding and the warm starts to a file.

        The file is an npz archive of plain arrays. What was attached is left out.

        Raises
        ------
        ValueError
            If the affinity cannot be written: it is no `Affinity`, or has an object for parameter.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        """
        storage.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Prepared:
        """Read data that `save` has written.

        The graph builder is fitted again when new samples are first predicted. A file that is
        damaged, or was not written by `save`, is a ValueError.

        Parameters
        ----------
        path : str or path-like
            A file that `save` wrote.
        """
        return storage.load(cls, path)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    def __repr__(self) -> str:
        built = "" if self._W is None else ", graph built"
        return f"Prepared({self.n_samples} samples{built})"

    def _attached_table(self) -> list[tuple[str, str, int]]:
        """Return what was attached, by the name that it gives itself, and its size."""
        own = (self, self.X, self._W, self._degrees, self._components, self._embedding, self.warm)
        seen = {id(part) for part in own}
        return [
            (getattr(kind, "title", kind.__name__), "kept", _held_bytes(value, seen))
            for kind, value in self.attached.items()
        ]

    def _data_table(self) -> list[tuple[str, str, int]]:
        """Return the samples and the graph: name, size in words and bytes."""
        rows = [("X", f"{self.X.shape[0]:,} x {self.X.shape[1]:,}", nbytes(self.X))]
        if self._W is not None:
            n_edges = (self._W.nnz if issparse(self._W) else np.count_nonzero(self._W)) // 2
            size = 0 if self._W is self.X else nbytes(self._W)
            rows.append(("W", f"{n_edges:,} edges", size))
        return rows

    def __str__(self) -> str:
        rows = self._data_table()
        if self._degrees is not None:
            rows.append(("degrees", "", nbytes(self._degrees)))
        if self._components is not None:
            n_components = int(self._components.max()) + 1
            rows.append(("components", str(n_components), nbytes(self._components)))
        if self._embedding is not None:
            vectors = self._embedding.vectors
            rows.append(("embedding", f"{vectors.shape[1]} vectors", nbytes(vectors)))
        rows += self.warm.table(None if self._embedding is None else self._embedding.vectors)
        rows += self._attached_table()
        rows.append(("total", "", sum(size for _, _, size in rows)))
        lines = [f"{name:<24}{note:>18}{size:>18,} bytes" for name, note, size in rows]
        return "\n".join([f"Prepared data of {self.n_samples:,} samples{self._where}", *lines])


def drawn(n: int, size: int) -> Ints:
    """Return some of `n` samples, ascending: random ones, those of a smaller size among them."""
    return np.sort(np.random.RandomState(0).permutation(n)[:size])


def _held_bytes(value: Any, seen: set[int]) -> int:
    """Return the bytes of the arrays that an object holds, each counted once."""
    if id(value) in seen or isinstance(value, (str, int, float, type(None))):
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray) or issparse(value):
        return nbytes(value)
    if isinstance(value, Mapping):
        parts: Any = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value
    else:
        parts = getattr(value, "__dict__", {}).values()
    return sum(_held_bytes(part, seen) for part in parts)


def _is_same(affinity: Any, other: Any) -> bool:
    """Whether two affinities build the same graph, by their parameters."""
    other = Affinity() if other is None else other
    if affinity is other:
        return True
    try:
        return bool(storage.described(affinity) == storage.described(other))
    except ValueError:  # an object that only knows itself
        return False
