"""DATA in all its formats: tables, arrays, graphs and AnnData, as one value."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._inputs import checked_format, is_sparse
from linkwise._jit import late_module
from linkwise._values import are_sentences, plain_numbers
from linkwise.cli.console import BadInput, counted
from linkwise.cli.formats import FORMATS, ID_NAMES, is_id_name
from linkwise.cli.places import Places
from linkwise.cli.problems import Problem
from linkwise.cli.records import has_texts, record_features, split_names, text_columns
from linkwise.cli.sources import source_of, suffix_of
from linkwise.cli.tables import (
    NO_FEATURE,
    SHOWN,
    advice_on_text,
    check_columns,
    codes,
    dropped,
    features,
    note_of_unknown,
    numbers_in,
    text_of,
    warn_of_constants,
)
from linkwise.constraints.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from scipy.sparse import csr_array

    from linkwise._types import AnyArray, Floats, Ints
    from linkwise.cli.formats import Arrays
    from linkwise.cli.requests import DataRequest
    from linkwise.cli.sources import Source


sparse = late_module("scipy.sparse")  # takes 0.2 s to import

COLUMN_OPTIONS = ("--labels", "--truth", "--id", "--features", "--drop", "--categorical", "--text")
NUMBER_OPTIONS = ("--scale", "--no-scale", "--impute")
UNNAMED = "Unnamed: "  # what pandas calls a column without a name, followed by its number
TABLE_REMEDY = "correct it, or choose another column with --id (or --drop this one)"


@dataclass
class Data:
    """The rows of DATA: features or a graph, their names, and what is known of them."""

    n_samples: int
    X: Any = None
    W: csr_array | None = None
    names: list[str] | None = None
    id_name: str = "row"
    feature_names: list[str] = field(default_factory=list)
    labels: Ints | None = None
    label_names: list[str] = field(default_factory=list)
    truth: Ints | None = None
    truth_names: list[str] = field(default_factory=list)
    ids_were_found: bool = False  # a column was taken for names because no two rows are alike
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    frame: Any = None  # the columns as they were typed, for showing rows to people
    amounts: Mapping[str, Floats] = field(default_factory=dict)  # of `frame`: text read as numbers
    is_standardised: bool = False  # whether numbers of `X` are not as in the file
    others: Any = None  # the columns that are left out, for people as well; without classes
    everything: Any = None  # all columns, for the annotation page
    annotated: Any = None  # the AnnData object, for writing a copy
    places: Places = field(default_factory=Places)  # where rows are in the file

    def shown_ids(self) -> list[Any]:
        """Return the names of the rows; their positions if they have none."""
        return list(range(self.n_samples)) if self.names is None else self.names

    @property
    def known_labels(self) -> Labels | None:
        """The labels with their names, or None without any."""
        return None if self.labels is None else Labels.of(self.labels, self.label_names)

    def truth_in_words(self) -> list[str | None] | None:
        """Return the true classes by name; None where one is not known."""
        if self.truth is None:
            return None
        return [self.truth_names[code] if code >= 0 else None for code in self.truth.tolist()]


def read_data(request: DataRequest, *, needs_features: Callable[[], bool]) -> Data:
    """Read DATA; `needs_features` tells whether a graph alone will not do, where both are there."""
    source = source_of(request)
    kind = FORMATS[source.suffix].kind
    if kind == "table" and request.graph:
        _check_options(request, "an edge list", (*COLUMN_OPTIONS, *NUMBER_OPTIONS))
        return _edge_list(source, request)
    if kind == "table":
        return _table(source, request)
    if kind == "annotated":
        return _annotated(source, request, needs_features=needs_features())
    _check_options(request, "an array", COLUMN_OPTIONS[3:])
    return _matrix(FORMATS[source.suffix].read(source, request, ()), request)


def _frame(source: Source, request: DataRequest, as_text: Sequence[str | int]) -> Any:
    """Read a table with at least one row."""
    frame = FORMATS[source.suffix].read(source, request, as_text)
    if not len(frame):
        raise BadInput(f"{source} has no rows.")
    return frame


def read_names(request: DataRequest) -> Data:
    """Read only what `check` needs of DATA: how many rows, their names and labels."""
    known = FORMATS.get(suffix_of(request))
    if known is not None and known.kind == "table" and not request.graph:
        return _identified(source_of(request), request)[1]
    return read_data(request, needs_features=lambda: False)


def _check_options(request: DataRequest, what: str, options: Sequence[str]) -> None:
    given = {
        "--labels": request.labels,
        "--truth": request.truth,
        "--id": request.id_column,
        "--features": request.features,
        "--drop": request.drop,
        "--categorical": request.categorical,
        "--text": request.text,
        "--scale": request.scale or None,
        "--no-scale": True if request.scale is False else None,
        "--impute": request.impute,
    }
    for option in options:
        if given[option]:
            raise BadInput(
                f"{request.name} is {what}, which has no columns for {option}. Leave it out; "
                "what is known goes into --constraints."
            )


# Tables ------------------------------------------------------------------------------------


def _table(source: Source, request: DataRequest) -> Data:
    frame, data = _identified(source, request)
    columns = [str(name) for name in frame.columns]
    request = _with_columns(request, [str(name) for name in data.everything.columns])
    asked = {
        "--drop": request.drop,
        "--categorical": request.categorical,
        "--features": request.features,
        "--text": text_columns(request, columns),
    }
    for option, names in asked.items():
        data.problems += check_columns(names, columns, option)
    taken = {*request.drop, request.labels, request.truth, data.id_name}
    wanted = dict.fromkeys(request.features) if request.features else columns
    kept = [name for name in wanted if name not in taken and name in columns]
    frame = frame[kept]

    def place(row: int) -> str:
        return data.places([row], data.names)

    as_records = request.text or (request.is_linkage and has_texts(frame, request))
    found = (record_features if as_records else features)(frame, request, place)
    if not kept and not request.features:
        found = found._replace(
            problems=[_no_feature(problem, data, request) for problem in found.problems]
        )
    kept = [name for name in kept if name not in found.left_out]
    classes = {request.labels, request.truth, data.id_name, *kept}
    data.others = data.others[[name for name in data.others.columns if str(name) not in classes]]
    data.X, data.feature_names, data.frame = found.X, found.names, frame[kept]
    data.is_standardised = found.is_standardised
    data.amounts = found.amounts
    data.problems += found.problems
    data.notes += found.notes
    listed = ", ".join(kept[:SHOWN]) + ", ..." * (len(kept) > SHOWN)
    shown = f"{counted(data.n_samples, 'row')}, {counted(len(kept), 'feature')} ({listed})"
    if found.n_categorical:
        shown += f"; {found.n_categorical} categorical, {found.X.shape[1]} columns of numbers"
    if request.text:
        shown += f"; compared as text: {', '.join(text_columns(request, columns))}"
    elif data.is_standardised:
        shown += "; standardised (--no-scale leaves them as they are)"
    data.notes.append(shown)
    return data


def _identified(source: Source, request: DataRequest) -> tuple[Any, Data]:
    """Read a table and the columns that are no features."""
    special = [name for name in (request.id_column, request.labels, request.truth) if name]
    # Typed as they are: 0123 is not 123. A name with a comma in it, or several names.
    text = _possible_names(request.text)
    possible = replace(request, features=tuple(_possible_names(request.features)))
    frame = _frame(source, possible, [*special, *text, *_possible_names(request.drop)])
    frame = frame.drop(columns=_blank_columns(frame, besides=_possible_names(request.drop)))
    request = _with_columns(request, [str(name) for name in frame.columns])
    data = Data(len(frame), others=frame, everything=frame)
    data.places = _places(source, frame)
    columns = {str(name): frame[name] for name in frame.columns}
    _take_columns(data, request, columns, place="column", remedy=TABLE_REMEDY)
    if request.id_column is None:
        _find_ids(data, frame, request)
    index = frame.attrs.get("index")
    asked = (*request.features, *request.drop, *request.categorical, *special, *text)
    if index not in (None, data.id_name, *asked):  # the file calls it names, no features
        frame = frame.drop(columns=index)
    unique = [name for name in _unique_texts(frame, request) if name != data.id_name]
    if unique:
        shown = ", ".join(map(repr, unique))
        data.notes.append(f"left out, because the text differs in every row: {shown}")
    first = str(frame.columns[0])
    if first not in (data.id_name, *asked) and _counts_rows(text_of(frame[first])):
        # No ids either: whether pairs mean its numbers or positions, only the user can say.
        data.notes.append(f"left out, because it counts the rows: {first!r} (--id makes it ids)")
        unique.append(first)
    return frame.drop(columns=unique), data


def _blank_columns(frame: Any, besides: Sequence[str]) -> list[str]:
    """Return the columns without a name and a value: of delimiters at the end of every line."""
    unnamed = [name for name in frame.columns if str(name).startswith(UNNAMED)]
    return [name for name in unnamed if name not in besides and not any(text_of(frame[name]))]


def _possible_names(typed: Sequence[str]) -> list[str]:
    """Return what may be the name of a column, before the columns are known."""
    return [name.strip() for text in typed for name in (text, *text.split(","))]


def _with_columns(request: DataRequest, columns: list[str]) -> DataRequest:
    """Return the request with single names, where several were typed with commas between."""
    return replace(
        request,
        drop=tuple(split_names(request.drop, columns)),
        features=tuple(split_names(request.features, columns)),
        categorical=tuple(split_names(request.categorical, columns)),
    )


def _no_feature(problem: Problem, data: Data, request: DataRequest) -> Problem:
    """Add to the problem that no column is left what would compare texts, if there are some."""
    if problem.text != NO_FEATURE or request.text or getattr(request, "shown_text", None):
        return problem
    taken = {*request.drop, request.labels, request.truth, request.id_column}
    texts = [
        str(name)
        for name in data.everything.columns
        if str(name) not in taken and are_sentences(text_of(data.everything[name]))
    ]
    if not texts:
        return problem
    advice = advice_on_text(shlex.quote(texts[0]), request)
    return Problem(f"{NO_FEATURE} Or {advice}.", ("--text", texts[0]))


def _find_ids(data: Data, frame: Any, request: DataRequest) -> None:
    """Take a column for the names of the rows without being told so, with a note."""
    special = [name for name in (request.labels, request.truth) if name]
    text = text_columns(request, [str(name) for name in frame.columns])
    found, shown = _called_ids(frame, (*request.features, *request.drop, *special, *text))
    if found is None:
        data.problems += _repeated_ids(frame, request)
        unique = _unique_texts(frame, request)
        if not unique:
            return
        found, shown = unique[0], f"column {unique[0]!r}, which differs in every row"
        data.ids_were_found = True
    data.notes.append(f"ids are the {shown} (--id chooses another)")
    data.names = text_of(frame[found])
    data.id_name = found
    solution = () if request.has_pairs else ("--drop", found)
    problem = _id_problem(data, f"column {found!r}", TABLE_REMEDY)
    data.problems += [] if problem is None else [Problem(problem, solution)]


def _called_ids(frame: Any, taken: Sequence[str]) -> tuple[str | None, str]:
    """Return the first column if its name says that it names the rows, and what it is."""
    first = str(frame.columns[0])
    if first in taken:
        return None, ""
    if first == frame.attrs.get("index"):
        return first, "index of the table"
    if first.startswith(UNNAMED):
        return first, "first column"
    if first.lower() in ID_NAMES or (is_id_name(first) and frame[first].is_unique):
        return first, f"column {first!r}"
    return None, ""


def _counts_rows(texts: Sequence[str]) -> bool:
    """Whether a column says 0, 1, 2, ... or 1, 2, 3, ..., as spreadsheets and exports do."""
    begins = len(texts) > 2 and texts[0].isdecimal() and int(texts[0]) in (0, 1)
    return begins and all(
        text.isdecimal() and int(text) == number for number, text in enumerate(texts, int(texts[0]))
    )


def _repeated_ids(frame: Any, request: DataRequest) -> list[Problem]:
    """Return a problem if the first column is called an id, but several rows share one."""
    first = str(frame.columns[0])
    asked = (*request.features, *request.drop, *request.categorical, request.labels, request.truth)
    if not is_id_name(first) or first in asked:
        return []
    n_distinct, typed = frame[first].nunique(), shlex.quote(first)
    text = (
        f"Column {first!r} is called an id, but has {n_distinct} different values in {len(frame)} "
        f"rows, and as a number it means nothing. Use --drop {typed}, or --categorical {typed}."
    )
    return [dropped(first, text)]


def _unique_texts(frame: Any, request: DataRequest) -> list[str]:
    """Return the columns of text in which no two rows are alike: names, not categories."""
    asked = {*request.features, *request.drop, *request.categorical, request.id_column}
    asked |= {request.labels, request.truth}
    asked |= {*text_columns(request, [str(name) for name in frame.columns])}
    return [
        str(name)
        for name in frame.columns
        if str(name) not in asked
        and (frame[name].dtype == object or str(frame[name].dtype).startswith("str"))
        and frame[name].is_unique
        and not frame[name].hasnans
        and numbers_in(frame[name], request) is None
        and _are_names(text_of(frame[name]))
    ]


def _are_names(texts: list[str]) -> bool:
    """Whether no cell is empty, and most are no numbers: else these are numbers with a mistake."""
    return all(texts) and bool(np.isnan(plain_numbers(texts)).mean() > 0.5)


def _id_problem(data: Data, source: str, remedy: str) -> str | None:
    """Return what is wrong with the names of the rows: all that are missing or repeated."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(data.names or ()):
        rows.setdefault(name, []).append(row)
    missing = rows.pop("", [])
    if missing:
        return f"The {source} has no id in {data.places(missing)}. Every row needs one."
    repeated = {name: found for name, found in rows.items() if len(found) > 1}
    if not repeated:
        return None
    shown = [f"{name!r} in {data.places(found)}" for name, found in list(repeated.items())[:SHOWN]]
    more = ", ..." * (len(repeated) > SHOWN)
    return f"The {source} has the id {', '.join(shown)}{more}. Ids must be unique: {remedy}."


def _places(source: Source, frame: Any) -> Places:
    how = {name: frame.attrs[name] for name in ("delimiter", "encoding") if name in frame.attrs}
    return Places(source, **how)


def _edge_list(source: Source, request: DataRequest) -> Data:
    """Read a graph from the columns source, target and perhaps weight."""
    frame = _frame(source, request, (0, 1))
    if len(frame.columns) < 2:
        message = f"{request.name} has one column; an edge list has two ends, and perhaps a weight."
        raise BadInput(message)
    places = _places(source, frame)
    ends = [text_of(frame[name]) for name in frame.columns[:2]]
    number: dict[str, int] = {}
    for row, pair in enumerate(zip(*ends, strict=True)):
        for name in pair:
            if not name:
                raise BadInput(f"{request.name} has an edge without an end in {places([row])}.")
            number.setdefault(name, len(number))
    weights = np.ones(len(frame))
    if len(frame.columns) > 2:
        weights = _edge_weights(frame[frame.columns[2]], places)
    heads, tails = (np.array([number[name] for name in names]) for names in ends)
    names = list(number)
    pairs = np.sort(np.column_stack((heads, tails)), axis=1)
    W = _merged_edges(pairs, weights, names, places=places)
    data = Data(len(names), W=W, names=names, id_name="node")
    data.notes.append(f"graph of {len(names)} nodes and {W.nnz // 2} edges")
    return data


def _edge_weights(column: Any, places: Places) -> Floats:
    weights = np.empty(len(column))
    for row, text in enumerate(text_of(column)):
        try:
            weights[row] = float(text)
        except ValueError:
            weights[row] = np.nan
        if not 0 <= weights[row] < np.inf:
            raise BadInput(
                f"The weight of an edge is a number from 0 up, but column {str(column.name)!r} has "
                f"{text!r} in {places([row])}."
            )
    return weights


def _merged_edges(
    ends: AnyArray, weights: Floats, names: list[str], *, places: Places
) -> csr_array:
    """Build the graph; an edge that is given in both directions counts once."""
    n, (low, high) = len(names), ends.T
    key = low.astype(np.int64) * n + high
    distinct, first, which = np.unique(key, return_index=True, return_inverse=True)
    differs = np.flatnonzero(weights != weights[first][which])
    if differs.size:
        row, other = int(differs[0]), int(first[which[differs[0]]])
        raise BadInput(
            f"The edge {names[low[row]]} - {names[high[row]]} has the weight {weights[other]:g} in "
            f"{places([other])} and {weights[row]:g} in {places([row])}. Remove one of them."
        )
    upper = sparse.coo_array((weights[first], (distinct // n, distinct % n)), shape=(n, n))
    upper.setdiag(0)
    return sparse.csr_array(upper + upper.T)


# Arrays and matrices -----------------------------------------------------------------------


def _matrix(arrays: Arrays, request: DataRequest) -> Data:
    """Take a matrix for a graph, if it is sparse and square or called one, or for features."""
    matrix = arrays.matrix
    if matrix.ndim != 2 or 0 in matrix.shape:
        message = f"{request.name} holds an array of shape {matrix.shape}, not rows and columns."
        raise BadInput(message)
    if matrix.dtype.kind not in "biuf":
        raise BadInput(f"{request.name} holds {matrix.dtype} values, which are no numbers.")
    is_square = matrix.shape[0] == matrix.shape[1]
    data = Data(matrix.shape[0])
    beside = {
        name: array
        for name, array in arrays.others.items()
        if array.ndim == 1 and len(array) == data.n_samples
    }
    remedy = "correct it, or choose another with --id"
    _take_columns(data, request, beside, place="array", remedy=remedy)
    if request.graph and not is_square:
        raise BadInput(f"--graph: {request.name} is not square but of shape {matrix.shape}.")
    if request.graph or (is_sparse(matrix) and is_square):
        _check_options(request, "a graph", NUMBER_OPTIONS)
        data.W = _csr(matrix, request)
        data.notes.append(f"graph of {data.n_samples} nodes and {data.W.nnz // 2} edges")
        return data
    if is_sparse(matrix):
        data.X = _csr(matrix, request)
        _check_finite(data.X, request)
    else:
        data.X = _dense(np.array(matrix, dtype=np.float64), request)
    data.feature_names = [f"x{k}" for k in range(matrix.shape[1])]
    data.is_standardised = bool(request.scale) and not is_sparse(matrix)
    scaled = "; standardised" if data.is_standardised else ""
    data.notes.append(
        f"{counted(data.n_samples, 'row')}, {counted(matrix.shape[1], 'feature')}{scaled}"
    )
    return data


def _take_columns(
    data: Data, request: DataRequest, columns: Mapping[str, Any], *, place: str, remedy: str
) -> None:
    """Find ids, labels and truth among the columns or arrays of the file."""
    options = {"--id": request.id_column, "--labels": request.labels, "--truth": request.truth}
    given = {option: name for option, name in options.items() if name}
    for option, name in given.items():
        data.problems += check_columns([name], list(columns), option)
    found = {option: name for option, name in given.items() if name in columns}
    if "--id" in found:
        name = found["--id"]
        data.names, data.id_name = text_of(columns[name]), name
        problem = _id_problem(data, f"{place} {name!r}", remedy)
        solution = ((), ()) if request.has_pairs else (("--drop", name), ("--id",))
        data.problems += [] if problem is None else [Problem(problem, *solution)]
    if "--labels" in found:
        name = found["--labels"]
        texts = text_of(columns[name])
        data.labels, data.label_names = codes(texts)
        data.notes += note_of_unknown(texts, name)
        if not data.label_names:
            text = f"--labels {name}: all values are empty, so no label is known."
            data.problems.append(Problem(text, ("--drop", name), ("--labels",)))
    if "--truth" in found:
        texts = text_of(columns[found["--truth"]])
        data.truth, data.truth_names = codes(texts)
        data.notes += note_of_unknown(texts, found["--truth"])


def _dense(X: Floats, request: DataRequest) -> Floats:
    if request.impute == "median" and np.isnan(X).any():
        median = np.nanmedian(np.where(np.isnan(X).all(axis=0), 0.0, X), axis=0)
        X = np.where(np.isnan(X), median, X)
    _check_finite(X, request)
    constant = np.flatnonzero(X.min(axis=0) == X.max(axis=0)).tolist()
    if request.scale or len(constant) == X.shape[1]:
        warn_of_constants([f"column {k}" for k in constant], X.shape[1])
    if request.scale:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X


def _check_finite(X: Any, request: DataRequest) -> None:
    values = X.data if is_sparse(X) else X
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    rows = X.tocoo().row[bad] if is_sparse(X) else np.flatnonzero(bad.any(axis=1))
    remedy = ", or use --impute median" if X is values and np.isnan(values).any() else ""
    raise BadInput(
        f"{request.name} has {int(bad.sum())} missing or infinite values, the first in row "
        f"{rows[0]} (counted from 0). Correct them{remedy}."
    )


# AnnData -----------------------------------------------------------------------------------


def _annotated(source: Source, request: DataRequest, *, needs_features: bool) -> Data:
    adata = FORMATS[source.suffix].read(source, request, ())
    data = Data(adata.n_obs, id_name="cell", annotated=adata)
    remedy = "call adata.obs_names_make_unique() and save it again"
    data.names = [str(name) for name in adata.obs_names]
    problem = _id_problem(data, "index obs_names", remedy)
    data.problems += [] if problem is None else [Problem(problem)]
    obs = {str(name): adata.obs[name] for name in adata.obs.columns}
    _take_columns(data, replace(request, id_column=None), obs, place="column", remedy=remedy)
    key = request.use or _preferred(adata, needs_features=needs_features)
    if key is not None and key in adata.obsp:
        graph = _csr(adata.obsp[key], request)
        # Neighbour graphs are symmetric up to the rounding of 32 bits.
        data.W = sparse.csr_array((graph + graph.T) / 2)
        _check_options(request, f"with obsp[{key!r}] a graph", NUMBER_OPTIONS)
        data.notes.append(f"{data.n_samples} cells, graph obsp[{key!r}]")
        return data
    matrix = adata.X if key == "X" else adata.obsm.get(key) if key is not None else None
    if matrix is None:
        keys = [*adata.obsp, *adata.obsm, "X"]
        wanted = f"no {key!r}" if key else "neither obsp['connectivities'] nor obsm['X_pca']"
        raise BadInput(
            f"{request.name} has {wanted}. Compute neighbours or PCA first (scanpy.pp.neighbors, "
            f"scanpy.pp.pca), or choose with --use: {', '.join(keys)}."
        )
    data.X, data.feature_names = _features(matrix, str(key), request)
    data.is_standardised = bool(request.scale) and not is_sparse(matrix)
    where = "X" if key == "X" else f"obsm[{key!r}]"
    data.notes.append(f"{data.n_samples} cells, {data.X.shape[1]} features of {where}")
    return data


def _csr(matrix: Any, request: DataRequest) -> csr_array:
    checked = checked_format(matrix, f"The matrix of {request.name}")
    return sparse.csr_array(checked).astype(np.float64)


def _features(matrix: Any, key: str, request: DataRequest) -> tuple[Any, list[str]]:
    if is_sparse(matrix):
        X = _csr(matrix, request)
    else:
        X = _dense(np.array(matrix, dtype=np.float64), request)
    return X, [f"{key}{k}" for k in range(X.shape[1])]


def with_features(data: Data, request: DataRequest) -> Data:
    """Return a graph's data with the features that AnnData hold beside it; else as they are."""
    if data.annotated is None or request.use is not None:
        return data
    key = _preferred(data.annotated, needs_features=True)
    if key is None:
        return data
    X, names = _features(data.annotated.obsm[key], key, request)
    return replace(data, W=None, X=X, feature_names=names)


def _preferred(adata: Any, *, needs_features: bool) -> str | None:
    if "connectivities" in adata.obsp and not needs_features:
        return "connectivities"
    return "X_pca" if "X_pca" in adata.obsm else None
