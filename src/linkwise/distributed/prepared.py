"""Prepared for Dask arrays: the samples and the graph live on workers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from linkwise.distributed.chunks import Chunks, numbers
from linkwise.distributed.cluster import Cluster
from linkwise.distributed.graph import Builder, check_affinity
from linkwise.distributed.search import find_neighbors
from linkwise.graph import prepared
from linkwise.graph.affinity import Affinity
from linkwise.graph.prepared import drawn
from linkwise.graph.storage import RestoredAffinity
from linkwise.graph.transformer import LOW_RECALL, warn_of_low_recall

if TYPE_CHECKING:
    import os

    from linkwise._types import AnyArray, Ints
    from linkwise.distributed.matrix import RowBlockMatrix


SUBSET = 100_000  # samples that are compared with new ones, and that Auto learns from


class Prepared(prepared.Prepared):
    """Data on Dask, ready for many fits: the same methods on more samples than a machine holds.

    Pass it to the `fit` of `NCut`, `SpectralLearning`, `CSC`, `SignedCSC`, `FastGE`, `E2CP`,
    `GFHF`, `LLGC`, `Poisson` or `Auto`. Their `labels_` are then a Dask array with the chunks of
    `X`.

    Parameters
    ----------
    X : dask.array.Array of shape (n_samples, n_features)
        The samples, rows in chunks: from zarr, npy files, parquet.
    affinity : Affinity or None, default=None
        How the graph is built; None means ``Affinity()``. Its neighbours are Euclidean.
    client : distributed.Client or None, default=None
        The cluster; None for the current client and, if there is none, for a local cluster of
        processes. That one ends with `close`, or at the end of a ``with`` block.

    Attributes
    ----------
    W : linkwise.distributed.matrix.RowBlockMatrix
        The graph, as blocks of rows on workers; built when it is first needed.
    recall_ : float
        Share of the nearest neighbours that were found, measured on 500 samples.

    Raises
    ------
    ValueError
        If a chunk holds something else than finite numbers, or has another width: the message names
        the chunk and the row.

    See Also
    --------
    linkwise.Prepared : The same on one machine.
    """

    is_distributed = True
    _where = " on Dask; bytes are those on the client"

    def __init__(self, X: Any, affinity: Affinity | None = None, client: Any = None) -> None:
        if not hasattr(X, "dask") or not hasattr(X, "to_delayed"):
            raise TypeError(
                f"X is a {type(X).__name__}, but linkwise.distributed.Prepared takes a Dask array: "
                "dask.array.from_array(X, chunks=...). For data of one machine take "
                "linkwise.Prepared."
            )
        if affinity is not None and not isinstance(affinity, Affinity):
            raise ValueError(f"affinity is an Affinity or None on Dask, not {affinity!r}.")
        check_affinity(Affinity() if affinity is None else affinity)
        if hasattr(X, "to_dask_array"):  # a frame
            X = X.to_dask_array()
        self.cluster = Cluster(client)
        try:
            self.chunks = Chunks(X, self.cluster)
        except BaseException:  # nobody else could end what was started here
            self.cluster.close()
            raise
        self.source = X
        self.recall_: float | None = None
        shape = (self.chunks.n_samples, self.chunks.n_features)
        self._set_up(_Shaped(shape), affinity)

    @property
    def W(self) -> RowBlockMatrix:  # noqa: N802
        """The graph, built when it is first needed."""
        if self._W is None:
            with self._lock:
                if self._W is None:
                    affinity = Affinity() if self.affinity is None else clone(self.affinity)
                    builder = Builder(affinity, self.chunks)
                    rng = check_random_state(affinity.random_state)
                    found = find_neighbors(self.chunks, builder.n_searched, rng)
                    self.recall_ = found.recall
                    if found.recall < LOW_RECALL:
                        advice = "Reduce the dimensions of the samples first."
                        warn_of_low_recall(found.recall, advice, stacklevel=4)
                    W = builder.graph(found)
                    self.affinity_, self._W = self._for_new_samples(affinity), W
        graph: RowBlockMatrix = self._W
        return graph

    def _for_new_samples(self, affinity: Affinity) -> Affinity:
        """Return the builder that compares new samples with the representatives.

        It has the samples themselves: when it is sent to workers, or asked after the cluster has
        ended, nothing is to be fetched any more.
        """
        X = self.chunks.rows(self.representatives)
        neighbors = min(int(affinity.neighbors), X.shape[0] - 1)
        return RestoredAffinity.of(clone(affinity).set_params(neighbors=neighbors), X)

    def chunked(self, values: AnyArray) -> Any:
        """Return an array with one row a sample as a Dask array with the chunks of `X`."""
        array = self.cluster.dask.array
        sizes = tuple(int(size) for size in self.chunks.sizes)
        return array.from_array(values, chunks=(sizes, *((n,) for n in values.shape[1:])))

    def rows(self, samples: Ints) -> AnyArray:
        """Return the features of some samples, ascending by their index."""
        return self.chunks.rows(samples).astype(np.float64)

    @cached_property
    def representatives(self) -> Ints:
        """Samples that stand for all where new ones are predicted: all, or a random subset."""
        return self.subset(np.zeros(0, dtype=np.intp))

    def subset(self, wanted: Ints) -> Ints:
        """Return a random subset of at most 100,000 samples, and those wanted; ascending."""
        n = self.n_samples
        if n <= SUBSET:
            return np.arange(n)
        return np.union1d(drawn(n, SUBSET), wanted)

    def predicted(self, classifier: Any, samples: Ints, labels: Ints) -> Any:
        """Return the labels of all samples, predicted chunk by chunk; those of some are known.

        They are fetched, as a graph method's are, so that they outlive the cluster.
        """
        futures = self.chunks.mapped(labels_of_chunk, classifier, samples, labels)
        return self.chunked(np.concatenate(self.cluster.fetch(futures)))

    def _data_table(self) -> list[tuple[str, str, int]]:
        """Return the samples and the graph, and what the client has of them; asks no worker."""
        rows = [("X", f"{self.n_samples:,} x {self.chunks.n_features:,}", 0)]
        if self._W is not None:
            rows.append(("W", f"{self._W.n_blocks} blocks of rows", 0))
        if self.affinity_ is not None:
            kept = vars(self.affinity_)["_samples"]
            rows.append(("representatives", f"{kept.shape[0]:,}", int(kept.nbytes)))
        return rows

    def close(self) -> None:
        """Forget the graph, and end the local cluster if this object has started one."""
        self._W = None
        self.cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Raise NotImplementedError: the graph is on workers."""
        raise NotImplementedError("Data on Dask cannot be saved as a file; write X itself.")


def labels_of_chunk(  # noqa: PLR0917  (called as a task)
    chunk: Any, first: int, classifier: Any, samples: Ints, labels: Ints
) -> Ints:
    """Predict the labels of a chunk; those of some samples are known."""
    if not len(chunk):
        return np.zeros(0, dtype=np.intp)
    found: Ints = classifier.predict(numbers(chunk)).copy()
    inside = (samples >= first) & (samples < first + found.size)
    found[samples[inside] - first] = labels[inside]
    return found


class _Shaped:
    """What is known of the samples where they are not."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
