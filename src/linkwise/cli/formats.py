"""File formats: how each is read and written. A new format is a new entry of `FORMATS`.

Libraries are imported when a file is read or written: the command line lists the formats without
them.
"""

from __future__ import annotations

import csv
import math
import re
import warnings
from collections import Counter
from dataclasses import replace
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from linkwise._files import UNREADABLE, atomic
from linkwise._optional import require
from linkwise._text import OLE_MARK, WINDOWS, WINDOWS_NOTE, ZIP_MARK, delimiter_of, is_windows_text
from linkwise.cli.console import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from linkwise._types import AnyArray, Floats, Ints
    from linkwise.cli.reading import Data
    from linkwise.cli.requests import DataRequest
    from linkwise.cli.sources import Source

SEPARATORS = {".tsv": "\t", ".tab": "\t"}
SHOWN = 8  # names in a message
ID_NAMES = ("id", "ids", "")  # first columns that are taken for names without asking
ID_SUFFIX = re.compile(r"(?:[\s_.-][iI][dD]|[a-z0-9]I[dD])$")
NAMING = re.compile(
    r"(?:(?:home|work|cell|office|contact|customer|mobile) )?"
    r"(?:phone|telephone|tel|telefon|fax|mobile phone|cell|handy)(?: (?:no|nr|num|number))?(?: \d)?"
    r"|(?:zip|postal|post|plz)(?: ?code)?|postcode|zipcode|iban|bic|ssn|isbn|ean|upc|barcode"
    r"|(?:account|customer|order|invoice|passport|serial|card|member|employee|patient|policy)"
    r" (?:no|nr|num|number)"
)
SPARSE_KEYS = {"format", "shape", "data"}  # what scipy.sparse.save_npz writes
SPARSE_PARTS = {*SPARSE_KEYS, "indices", "indptr", "row", "col", "offsets", "coords", "_is_array"}


class Arrays(NamedTuple):
    """A matrix, sparse or dense, and the other arrays of its file."""

    matrix: Any
    others: dict[str, Any]


class Column(NamedTuple):
    """The clusters, and what their column is called."""

    name: str
    labels: Ints
    classes: AnyArray | None = None  # the names of the clusters, if labels were given
    probability: Floats | None = None  # that a row is where it belongs, if the method tells

    @property
    def shown(self) -> list[Any]:
        """The cluster of each row, by name if it has one."""
        named = self.labels if self.classes is None else self.classes[self.labels]
        return named.tolist()

    def beside(self, id_name: str, ids: list[Any]) -> dict[str, list[Any]]:
        """Return the columns of a table: ids, clusters and, if they are known, probabilities."""
        columns = {id_name: ids, self.name: self.shown}
        if self.probability is not None:
            columns["probability"] = [round(p, 4) for p in self.probability.tolist()]
        return columns


class Format(NamedTuple):
    """How a file is read, and how clusters are written.

    Parameters
    ----------
    kind : {"table", "arrays", "annotated"}
        What `read` returns: a pandas data frame, `Arrays` or an AnnData object.
    read : callable
        ``read(source, request, as_text)``. The columns `as_text` of a table, names or positions,
        stay as they were typed; a format whose columns have types need not look at it. Raises
        BadInput if the file is damaged or a name of its columns is repeated.
    write : callable, optional
        ``write(path, data, clusters)`` writes the ids of the rows and the column `clusters`.
    needs_file : bool, default=False
        Whether a pipe will not do.
    """

    kind: Literal["table", "arrays", "annotated"]
    read: Callable[[Source, DataRequest, Sequence[str | int]], Any]
    write: Callable[[Path, Data, Column], None] | None = None
    needs_file: bool = False


class NotEncoded(BadInput):
    """The file is no text in the encoding that was asked for."""


# Tables ------------------------------------------------------------------------------------


def _read_text(source: Source, request: DataRequest, as_text: Sequence[str | int]) -> Any:
    """Read a text file with columns, by Windows' encoding where it is not in that asked for."""
    try:
        return _read_encoded(source, request, as_text)
    except NotEncoded:
        with source.binary() as file:
            if not is_windows_text(file.read(), request.encoding):
                raise
    warnings.warn(f"{source} {WINDOWS_NOTE} (--encoding chooses another).", stacklevel=2)
    return _read_encoded(source, replace(request, encoding=WINDOWS), as_text)


def _read_encoded(source: Source, request: DataRequest, as_text: Sequence[str | int]) -> Any:
    """Read a text file; a first column that is called id stays as it was typed."""
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    _check_content(source)
    separator = request.delimiter or _separator(source, request.encoding)
    header = _checked_header(source, request.encoding, separator)
    converted = [name for name in as_text if name in header or name in range(len(header))]
    if is_id_name(header[0]) and header[0] not in converted and 0 not in converted:
        converted.append(0)
    # Shown as they are written: the 0 that a phone number begins with is part of it.
    converted += [
        name
        for k, name in enumerate(header)
        if names_things(name) and not {k, name} & {*converted, *request.features}
    ]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            frame = pandas.read_csv(
                source.open(),
                sep=separator,
                decimal=request.decimal,
                encoding=source.encoding(request.encoding),
                index_col=False,
                low_memory=False,
                **_nearest_double(pandas),
                converters=dict.fromkeys(converted, str.strip),
            )
    except UnicodeError as error:
        raise NotEncoded(_not_encoded(source, request.encoding)) from error
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        reason = str(error).rpartition("C error: ")[2].strip().rstrip(".")
        raise BadInput(
            f"{source} is no regular table ({reason}). Every row needs as many values as the "
            "header; quote texts that contain the delimiter."
        ) from error
    if _may_be_short(frame):
        _check_short_rows(header, source, request.encoding, separator)
    _warn_of_numbers(header, source, is_graph=request.graph)
    frame.attrs |= {"delimiter": separator, "encoding": request.encoding}
    return frame


def _check_content(source: Source) -> None:
    """Raise if a file that is called text is a spreadsheet."""
    with source.binary() as file:
        start = file.read(4)
    if start == OLE_MARK:
        raise BadInput(f"{source} is a spreadsheet of old Excel. Save it as .xlsx or CSV.")
    if start == ZIP_MARK:
        raise BadInput(
            f"{source} is no text but a spreadsheet or an archive. If it is from Excel, use "
            "--format xlsx, or save it as CSV."
        )


def _separator(source: Source, encoding: str) -> str:
    """Return what separates the columns of the first line; in doubt, what the suffix says."""
    usual = SEPARATORS.get(source.suffix, ",")
    try:
        with source.text(source.encoding(encoding)) as file:
            return delimiter_of(file.readline(), usual)
    except (UnicodeError, LookupError, csv.Error):  # told when the header is checked
        return usual


def _read_excel(source: Source, _: DataRequest, __: Sequence[str | int]) -> Any:
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    require("openpyxl", extra="excel", purpose="Reading .xlsx files")
    try:
        frame = pandas.read_excel(source.open(), engine="openpyxl")
    except UNREADABLE as error:
        raise BadInput(f"{source} is no readable .xlsx file ({error}).") from error
    frame.columns = [str(name) for name in frame.columns]
    check_distinct_names(list(frame.columns), source)
    return frame


def is_id_name(name: str) -> bool:
    """Whether a column is called as one that names the rows: id, customer_id, PassengerId."""
    return name.lower() in ID_NAMES or ID_SUFFIX.search(name) is not None


def names_things(name: str) -> bool:
    """Whether the name of a column says that its numbers name something: phone, zip, order_id.

    >>> [names_things(name) for name in ("Phone No.", "zip_code", "storeId", "number of visits")]
    [True, True, True, False]
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s_.-]+", " ", name).strip().lower()
    return is_id_name(name) or NAMING.fullmatch(words) is not None


def _nearest_double(pandas: Any) -> dict[str, str]:
    """Return what lets pandas read numbers as Python does, which it does by itself from 3.1 on."""
    version = tuple(map(int, pandas.__version__.split(".")[:2]))
    return {"float_precision": "round_trip"} if version < (3, 1) else {}


def _read_parquet(source: Source, request: DataRequest, _: Sequence[str | int]) -> Any:
    """Read a Parquet file; ``frame.attrs["index"]`` names the column that held its index."""
    pandas = require("pandas", extra="cli", purpose="Reading tables")
    pyarrow = require("pyarrow.parquet", extra="parquet", purpose="Reading Parquet files")
    sizes = require("linkwise.cli.sizes", extra="cli", purpose="Reading tables")
    try:
        sizes.check_size(source, sizes.parquet_bytes(source.open(), pyarrow), request)
        frame = pandas.read_parquet(source.open())
    except (ValueError, OSError) as error:  # pyarrow's errors are one or the other
        raise BadInput(f"{source} is no readable Parquet file ({error}).") from error
    frame.columns = [str(name) for name in frame.columns]
    check_distinct_names(list(frame.columns), source)
    index = frame.index
    if isinstance(index, pandas.MultiIndex):
        index = index.map(lambda key: "/".join(map(str, key)))
    is_numbering = index.name is None and index.equals(pandas.RangeIndex(len(frame)))
    if is_numbering or (request.graph and index.name is None):
        return frame
    can_name = index.is_unique and not index.hasnans
    if index.name is None and not can_name:
        text = f"{source}: the index repeats or lacks values, so it is left out."
        warnings.warn(text, UserWarning, stacklevel=2)
        return frame
    name = _free_name(index.name, frame.columns)
    frame = frame.reset_index(drop=True)
    frame.insert(0, name, index.to_numpy())
    if can_name and not request.graph:
        frame.attrs["index"] = name
    return frame


def _free_name(wanted: Any, taken: Iterable[str]) -> str:
    """Return a name that no column has: the wanted one, or index, index_2 and so on."""
    numbered = (f"index_{k}" for k in count(2))
    first = [] if wanted is None else [str(wanted)]
    return next(name for name in chain(first, ["index"], numbered) if name not in set(taken))


def _checked_header(source: Source, encoding: str, separator: str) -> list[str]:
    """Look at the first line alone: pandas renames repeated columns and guesses an index."""
    try:
        with source.text(source.encoding(encoding)) as file:
            header = next(csv.reader(file, delimiter=separator), None)
    except UnicodeError as error:
        raise NotEncoded(_not_encoded(source, encoding)) from error
    except LookupError as error:
        message = f"--encoding {encoding}: there is no such encoding. utf-8 and latin-1 are common."
        raise BadInput(message) from error
    except (csv.Error, TypeError) as error:
        raise BadInput(
            f"{source}: the first line cannot be read with --delimiter {separator!r} ({error})."
        ) from error
    if not header or not any(header):
        raise BadInput(f"{source} is empty. Its first line must name the columns.")
    if len(header) == 1:
        for other in ("\t", ";", "|", ","):
            if other in header[0]:
                raise BadInput(
                    f"{source} has one column, {header[0][:60]!r}, which holds {other!r}. "
                    f"Use --delimiter {'$' * (other == chr(9))}{other!r}."
                )
    check_distinct_names([name for name in header if name], source)  # pandas numbers the others
    return header


def _may_be_short(frame: Any) -> bool:
    """Whether some row may have too few fields: pandas fills it up, so its last cell is empty."""
    last = frame.iloc[:, -1]
    return bool(last.hasnans or (last == "").any())


def _check_short_rows(header: list[str], source: Source, encoding: str, separator: str) -> None:
    """Warn of rows with fewer fields than the header; raise if most are, and so the table wrong.

    Columns without a name at the end are none: some programs end only the header by a delimiter.
    """
    n_columns = max((k for k, name in enumerate(header, 1) if name.strip()), default=0)
    n_rows, n_short, first, before = -1, 0, "", 0
    with source.text(source.encoding(encoding)) as file:
        reader = csv.reader(file, delimiter=separator)
        try:
            for cells in reader:
                if any(cell.strip() for cell in cells) or len(cells) > 1:
                    n_rows += 1
                    if len(cells) < n_columns:
                        n_short += 1
                        first = first or f"line {before + 1}, with {len(cells)}"
                before = reader.line_num
        except (csv.Error, UnicodeError):  # pandas has read it: nothing is known of its lines
            return
    if not n_short:
        return
    text = (
        f"{source}: {n_short} of {n_rows} rows have fewer values than the {n_columns} columns of "
        f"the header, first {first}."
    )
    if 2 * n_short > n_rows:
        raise BadInput(
            f"{text} Values would stand in wrong columns. Correct the rows, or give another "
            "--delimiter."
        )
    text += " What is missing at their end counts as empty: look whether the others stand right."
    warnings.warn(text, UserWarning, stacklevel=2)


def _warn_of_numbers(header: list[str], source: Source, *, is_graph: bool) -> None:
    """Tell that a first line of numbers was taken for names, unless it just counts columns."""
    n = len(header)
    counts = [[str(k) for k in range(first, first + n)] for first in (0, 1)]
    if _is_all_numbers(header) and (is_graph or header not in counts):
        shown = ", ".join(header[:SHOWN]) + ", ..." * (n > SHOWN)
        text = (
            f"{source}: the first line ({shown}) holds numbers only, and was taken for the names "
            "of the columns. If it is data, put a line with names above it."
        )
        warnings.warn(text, UserWarning, stacklevel=2)


def _is_all_numbers(texts: Iterable[str]) -> bool:
    try:
        return all(math.isfinite(float(text)) for text in texts)
    except ValueError:
        return False


def check_distinct_names(header: Sequence[str], source: Source | str) -> None:
    """Raise if a name of the columns is repeated."""
    repeated = sorted(name for name, times in Counter(header).items() if times > 1)
    if repeated:
        remedy = "Rename one."
        if _is_all_numbers(header):
            remedy = "Its first line must name the columns, but holds numbers only."
        raise BadInput(f"{source} has more than one column called {repeated[0]!r}. {remedy}")


def _not_encoded(source: Source, encoding: str) -> str:
    return f"{source} is not {encoding} text. Save it as UTF-8, or try --encoding latin-1."


# Arrays ------------------------------------------------------------------------------------


def _load(source: Source, request: DataRequest) -> Any:
    numpy = require("numpy", extra="cli", purpose="Reading arrays")
    sizes = require("linkwise.cli.sizes", extra="cli", purpose="Reading arrays")
    try:
        with source.binary() as file:
            sizes.check_size(source, sizes.declared_bytes(file), request)
            file.seek(0)
            found = numpy.load(file, allow_pickle=False)
            if not hasattr(found, "files"):
                return found
            # Now, because what is damaged shows only when it is read.
            return {name: found[name] for name in found.files}
    except UNREADABLE as error:
        if "Object arrays" in str(error):
            message = f"{source} holds Python objects; save arrays of numbers or text instead."
            raise BadInput(message) from error
        raise BadInput(f"{source} is no readable NumPy file of numbers ({error}).") from error


def _read_array(source: Source, request: DataRequest, _: Sequence[str | int]) -> Arrays:
    return Arrays(_load(source, request), {})


def _read_matrix_market(source: Source, request: DataRequest, _: Sequence[str | int]) -> Arrays:
    scipy_io = require("scipy.io", extra="cli", purpose="Reading matrices")
    sizes = require("linkwise.cli.sizes", extra="cli", purpose="Reading matrices")
    try:
        rows, columns, n_entries, kind, *_ = scipy_io.mminfo(source.open())
        of_sparse = int(n_entries) if kind == "coordinate" else None
        n_bytes = sizes.matrix_bytes(int(rows), int(columns), of_sparse)
        sizes.check_size(source, n_bytes, request)
        return Arrays(scipy_io.mmread(source.open()), {})
    except (ValueError, OverflowError, EOFError) as error:
        raise BadInput(f"{source} is no readable Matrix Market file ({error}).") from error


def _read_archive(source: Source, request: DataRequest, _: Sequence[str | int]) -> Arrays:
    """Read an .npz file: a sparse matrix or X, with other arrays beside it."""
    arrays = _load(source, request)
    if not isinstance(arrays, dict):
        raise BadInput(f"{source} holds a single array, no archive of some. Call it .npy.")
    if set(arrays) >= SPARSE_KEYS:
        others = {name: array for name, array in arrays.items() if name not in SPARSE_PARTS}
        sparse = require("scipy.sparse", extra="cli", purpose="Reading matrices")
        try:
            with source.binary() as file:
                matrix = sparse.load_npz(file)
        except UNREADABLE as error:
            raise BadInput(f"{source} is no readable sparse matrix ({error}).") from error
        sizes = require("linkwise.cli.sizes", extra="cli", purpose="Reading matrices")
        sizes.check_size(source, sizes.matrix_bytes(*matrix.shape, matrix.nnz), request)
        return Arrays(matrix, others)
    tables = [name for name, array in arrays.items() if array.ndim == 2]
    name = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
    if name is None:
        raise BadInput(
            f"{request.name} holds {', '.join(arrays) or 'nothing'}: call the matrix with "
            "one row a sample X."
        )
    return Arrays(arrays[name], arrays)


# AnnData -----------------------------------------------------------------------------------


def _read_annotated(source: Source, request: DataRequest, _: Sequence[str | int]) -> Any:
    anndata = require("anndata", extra="anndata", purpose="Reading .h5ad files")
    h5py = require("h5py", extra="anndata", purpose="Reading .h5ad files")
    sizes = require("linkwise.cli.sizes", extra="cli", purpose="Reading .h5ad files")
    try:
        sizes.check_size(source, sizes.hdf_bytes(source.path, h5py), request)
        return anndata.read_h5ad(source.path)
    except (MemoryError, BadInput):
        raise
    except Exception as error:  # whatever other files of this format hold
        raise BadInput(f"{source} is no readable .h5ad file ({error}).") from error


# Writing -----------------------------------------------------------------------------------


def write_rows(path: Path, header: Sequence[str], rows: Any) -> None:
    """Write a table as text: with tabs if the name says so, else with commas."""
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with atomic(path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _write_text(path: Path, data: Data, clusters: Column) -> None:
    columns = clusters.beside(data.id_name, data.shown_ids())
    write_rows(path, list(columns), zip(*columns.values(), strict=True))


def _write_parquet(path: Path, data: Data, clusters: Column) -> None:
    pandas = require("pandas", extra="parquet", purpose="Writing Parquet files")
    require("pyarrow", extra="parquet", purpose="Writing Parquet files")
    frame = pandas.DataFrame(clusters.beside(data.id_name, data.shown_ids()))
    with atomic(path) as unfinished:
        frame.to_parquet(unfinished, index=False)


def _write_array(path: Path, _: Data, clusters: Column) -> None:
    numpy = require("numpy", extra="cli", purpose="Writing arrays")
    with atomic(path) as unfinished, unfinished.open("wb") as file:
        numpy.save(file, clusters.labels)


def _write_annotated(path: Path, data: Data, clusters: Column) -> None:
    copy, column = data.annotated.copy(), clusters.name
    copy.obs[column] = [str(label) for label in clusters.shown]
    copy.obs[column] = copy.obs[column].astype("category")
    with atomic(path) as unfinished:
        copy.write_h5ad(unfinished)


# The table ---------------------------------------------------------------------------------

FORMATS: dict[str, Format] = {
    ".csv": Format("table", _read_text, _write_text),
    ".tsv": Format("table", _read_text, _write_text),
    ".tab": Format("table", _read_text),
    ".txt": Format("table", _read_text),
    ".xlsx": Format("table", _read_excel),
    ".parquet": Format("table", _read_parquet, _write_parquet),
    ".npy": Format("arrays", _read_array, _write_array),
    ".npz": Format("arrays", _read_archive),
    ".mtx": Format("arrays", _read_matrix_market),
    ".h5ad": Format("annotated", _read_annotated, _write_annotated, needs_file=True),
}


def writable() -> tuple[str, ...]:
    """Return the formats that clusters can be written in; the first one is for pipes."""
    return tuple(suffix for suffix, known in FORMATS.items() if known.write is not None)


def write_clusters(path: Path, data: Data, clusters: Column) -> None:
    """Write the clusters in the format that the name of the file tells."""
    write = FORMATS.get(path.suffix.lower(), FORMATS[".csv"]).write or _write_text
    write(path, data, clusters)
