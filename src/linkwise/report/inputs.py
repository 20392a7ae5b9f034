"""The arguments of a report, checked and brought to one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_array

from linkwise._inputs import checked_format
from linkwise._quiet import quiet
from linkwise.constraints import Constraints, Suspect
from linkwise.exceptions import DisconnectedGraphWarning
from linkwise.graph import Prepared
from linkwise.graph.frames import checked_frame
from linkwise.metrics.checks import check_length
from linkwise.report.features import Features
from linkwise.report.text import name_of, plain
from linkwise.result import Result

if TYPE_CHECKING:
    from linkwise._types import Ints, Matrix


@dataclass(frozen=True, eq=False)
class Partition:
    """Samples in named groups: clusters, or true classes."""

    codes: Ints  # group of each sample, 0 .. number of groups - 1; of unknown classes -1
    names: list[str]
    sizes: Ints

    @property
    def n_groups(self) -> int:
        """The number of groups; none is empty."""
        return len(self.names)

    @classmethod
    def of(cls, labels: Any, name: str, n_samples: int | None = None) -> Partition:
        """Check labels of any kind and number them."""
        array = np.asarray(labels)
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"{name} must hold one label a sample, but has shape {array.shape}.")
        if n_samples is not None:
            check_length(array.size, n_samples, f"{name} is about")
        if array.dtype.kind == "f" and np.isnan(array).any():
            message = f"{name}[{int(np.isnan(array).argmax())}] is nan. Every sample needs a label."
            raise ValueError(message)
        try:
            values, codes, sizes = np.unique(array, return_inverse=True, return_counts=True)
        except TypeError as error:
            message = f"{name} mixes labels that cannot be compared. Use one type."
            raise ValueError(message) from error
        return cls(codes.astype(np.intp), [name_of(value) for value in values.tolist()], sizes)

    def named(self, labels: Any, model: Any, given: Any) -> Partition:
        """Return the clusters with given names, or those that a model gives to its own labels."""
        if given is not None:
            return replace(self, names=_given_names(given, np.unique(np.asarray(labels)).tolist()))
        classes = getattr(model, "classes_", None)
        if classes is None or not np.array_equal(labels, model.labels_):
            return self
        return replace(self, names=[name_of(classes[label]) for label in np.unique(labels)])

    @classmethod
    def of_known(cls, labels: Any, name: str, n_samples: int) -> Partition | None:
        """Check labels of which some are unknown and number the others; None if all are."""
        array = np.asarray(labels)
        if array.ndim != 1:
            return cls.of(array, name, n_samples)
        check_length(array.size, n_samples, f"{name} is about")
        known = np.array([not _is_unknown(value) for value in array.tolist()], dtype=bool)
        if not known.any():
            return None
        found = cls.of(array[known], name)
        codes = np.full(n_samples, -1, dtype=np.intp)
        codes[known] = found.codes
        return cls(codes, found.names, found.sizes)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Everything that a report reads; of one number of samples throughout."""

    clusters: Partition
    X: Matrix | None
    graph: Prepared | None  # W, and its eigenvectors
    constraints: Constraints
    result: Result | None
    method: str | None
    parameters: dict[str, str]
    choices: list[str]  # what the method chose, in lines
    suspects: list[Suspect]  # all constraints, if the method estimates how likely each is wrong
    ids: list[str] | None
    features: Features | None
    truth: Partition | None

    @property
    def n_samples(self) -> int:
        """The number of samples."""
        return self.clusters.codes.size

    @property
    def W(self) -> Matrix | None:  # noqa: N802
        """The graph."""
        return None if self.graph is None else self.graph.W

    def id_of(self, sample: int) -> str:
        """Return the identifier of a sample; its row number if it has none."""
        return str(sample) if self.ids is None else self.ids[sample]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Inputs:
        """Check the arguments of `render_report`."""
        clusters = Partition.of(given["labels"], "labels")
        n = clusters.codes.size
        result, model = given["result"], None
        if result is not None and not isinstance(result, Result):
            result, model = _fitted(result), result
        parameters = _parameters(given["parameters"], model)
        method = parameters.pop("method", None if model is None else type(model).__name__)
        report = getattr(model, "report_", None)
        clusters = clusters.named(given["labels"], model, given["cluster_names"])
        X, graph = _data_and_graph(given["X"], given["W"], model, n_samples=n)
        table, truth = given["feature_values"], given["truth"]
        if table is None and X is not None:  # as given, with the names of its columns
            table = getattr(given["X"], "source", given["X"])
        return cls(
            clusters=clusters,
            X=X,
            graph=graph,
            constraints=_constraints(given["constraints"], n),
            result=result,
            method=method,
            parameters=parameters,
            choices=[] if report is None else [plain(line) for line in report.summary()],
            suspects=_suspects(model, n),
            ids=None if given["ids"] is None else _ids(given["ids"], n),
            features=None if table is None else Features.of(table, given["feature_names"], n),
            truth=None if truth is None else Partition.of_known(truth, "truth", n),
        )


def _given_names(given: Any, labels: list[Any]) -> list[str]:
    """Return a name for each cluster: by its label, or in the order of the labels."""
    if isinstance(given, Mapping):
        names = [name_of(given.get(label, label)) for label in labels]
        unknown = [label for label in given if label not in labels]
    else:
        names, unknown = [name_of(name) for name in given], []
    if unknown or len(names) != len(labels):
        what = f"names {unknown[0]!r}" if unknown else f"has {len(names)} names"
        raise ValueError(f"cluster_names {what}, but the clusters are {plain(labels)}.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"cluster_names has {twice!r} twice. Give every cluster its own name.")
    return names


def _is_unknown(value: Any) -> bool:
    """Whether a true class is not known: None, a missing number, or -1; no text is."""
    if value is None or str(value) in {"<NA>", "NaT"}:
        return not isinstance(value, str)
    return isinstance(value, (int, float)) and (value != value or value == -1)  # noqa: PLR0124


def _fitted(model: Any) -> Result:
    result = getattr(model, "result_", None)
    if not isinstance(result, Result):
        raise TypeError(
            "result must be a linkwise.Result or a fitted estimator of linkwise, got "
            f"{type(model).__name__}."
        )
    return result


def _parameters(given: Any, model: Any) -> dict[str, str]:
    if given is None:
        given = {} if model is None else model.get_params(deep=False)
    if not isinstance(given, Mapping):
        message = f"parameters must be a dict of names and values, got {type(given).__name__}."
        raise TypeError(message)
    return {plain(name): plain(value) for name, value in given.items()}


def _suspects(model: Any, n_samples: int) -> list[Suspect]:
    found = list(getattr(model, "suspects_", ()))
    last = max((max(one.samples) for one in found), default=-1)
    if last >= n_samples:
        message = f"result has a constraint on sample {last}, but labels has {n_samples} entries."
        raise ValueError(message)
    return found


def _data(X: Any, n_samples: int) -> Matrix:
    kinds = [np.float64, np.float32]
    X = checked_format(checked_frame(X))
    X = check_array(X, accept_sparse="csr", dtype=kinds, input_name="X")
    check_length(X.shape[0], n_samples, "X is about")
    return csr_array(X) if issparse(X) else X


def _data_and_graph(
    X: Any, W: Any, model: Any, *, n_samples: int
) -> tuple[Matrix | None, Prepared | None]:
    """Return the data and their graph, each of which may be missing."""
    W = getattr(model, "affinity_matrix_", None) if W is None else W
    if isinstance(X, Prepared):
        check_length(X.n_samples, n_samples, "X is about")
        return None if X.is_graph else X.X, X
    X = None if X is None else _data(X, n_samples)
    # The graph of a single sample has no edges to report on.
    return X, None if W is None or n_samples == 1 else _graph(W, n_samples)


def _graph(W: Any, n_samples: int) -> Prepared:
    W = check_array(checked_format(W, "W"), accept_sparse="csr", dtype=np.float64, input_name="W")
    check_length(W.shape[0], n_samples, "W is about")
    with quiet(DisconnectedGraphWarning):  # the report says how many components there are
        return Prepared(W, "precomputed")


def _constraints(given: Any, n_samples: int) -> Constraints:
    if given is None:
        return Constraints(n_samples)
    if not isinstance(given, Constraints):
        raise TypeError(f"constraints must be a linkwise.Constraints, got {type(given).__name__}.")
    check_length(given.n_samples, n_samples, "constraints is about")
    return given


def _ids(given: Any, n_samples: int) -> list[str]:
    names = [name_of(name) for name in given]
    check_length(len(names), n_samples, "ids is about")
    return names
