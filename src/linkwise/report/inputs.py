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
from linkwise.metrics.checks import check_length
from linkwise.result import Result

if TYPE_CHECKING:
    from linkwise._types import Ints, Matrix


LONGEST_TEXT = 200  # characters of an identifier, name or parameter that are shown


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
        return cls(codes.astype(np.intp), [_name(value) for value in values.tolist()], sizes)

    def named(self, labels: Any, model: Any) -> Partition:
        """Return the clusters with the names that a model gives to its own labels."""
        classes = getattr(model, "classes_", None)
        if classes is None or not np.array_equal(labels, model.labels_):
            return self
        return replace(self, names=[_name(classes[label]) for label in np.unique(labels)])

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
class Features:
    """Columns to describe the clusters with, in the units of their owner."""

    values: Matrix
    names: list[str]
    n_left_out: int  # columns that are not numbers

    @classmethod
    def of(cls, table: Any, names: Any, n_samples: int) -> Features:
        """Take a matrix or a data frame, with the names of its columns or given ones."""
        columns = getattr(table, "columns", None)
        # Without a copy where possible: the table may be large.
        table = checked_format(table, "feature_values")
        values = csr_array(table) if issparse(table) else np.asarray(table)
        if values.ndim != 2:
            message = f"feature_values must have rows and columns, but has shape {values.shape}."
            raise ValueError(message)
        check_length(values.shape[0], n_samples, "feature_values is about")
        if names is None:
            names = range(values.shape[1]) if columns is None else columns
            prefix = "feature " if columns is None else ""
        else:
            prefix = ""
        shown = [f"{prefix}{_name(name)}" for name in names]
        if len(shown) != values.shape[1]:
            raise ValueError(
                f"feature_names has {len(shown)} entries, but there are {values.shape[1]} columns."
            )
        if values.dtype.kind in "fiub":
            return cls(values, shown, 0)
        return cls._numbers_among(values, shown)

    @classmethod
    def _numbers_among(cls, values: Any, names: list[str]) -> Features:
        """Keep the columns of a mixed table that are numbers."""
        kept, kept_names = [], []
        for column, name in zip(values.T, names, strict=True):
            try:
                kept.append(column.astype(np.float64))
            except (TypeError, ValueError):
                continue
            kept_names.append(name)
        numbers = np.column_stack(kept) if kept else np.empty((len(values), 0))
        return cls(numbers, kept_names, len(names) - len(kept))


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

    def name_of(self, sample: int) -> str:
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
        clusters = clusters.named(given["labels"], model)
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


def plain(value: Any, longest: int = LONGEST_TEXT) -> str:
    """Return a value as text that any page can hold: no control characters, not endless.

    Examples
    --------
    >>> plain("one" + chr(9) + "line" + 500 * "!", longest=9)
    'one line!…'
    """
    text = str(value)
    if len(text) <= longest and text.isprintable():
        return text  # nearly always, and there may be millions
    if len(text) > longest:
        text = text[:longest] + "…"
    # Lone surrogates cannot be written to a file.
    text = text.encode("utf-8", "replace").decode("utf-8")
    clean = (
        " " if c in "\t\n\r" else c if ord(c) > 159 or c.isprintable() else "\ufffd" for c in text
    )
    return "".join(clean)


def _name(value: Any) -> str:
    return plain(value) or "(empty)"


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
    X = check_array(checked_format(X), accept_sparse="csr", dtype=kinds, input_name="X")
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
    names = [_name(name) for name in given]
    check_length(len(names), n_samples, "ids is about")
    return names
