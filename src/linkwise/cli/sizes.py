"""How much memory a file asks for, found before anything is allocated."""

from __future__ import annotations

import math
import zipfile
from typing import TYPE_CHECKING, Any, BinaryIO

from numpy.lib import format as npy

from linkwise.cli.console import BadInput

if TYPE_CHECKING:
    from linkwise.cli.requests import DataRequest
    from linkwise.cli.sources import Source

GB = 2**30
COMPRESSED = 10  # times its own size that a file may always take in memory
NUMBER = 8  # bytes of a value, an index or a pointer


def check_size(source: Source, n_bytes: int, request: DataRequest) -> None:
    """Raise BadInput if a file declares far more than it holds, above the limit."""
    if n_bytes > max(request.max_gb * GB, COMPRESSED * source.size):
        raise BadInput(
            f"{source} has {source.size:,} bytes, but declares {n_bytes / GB:,.1f} GB of numbers; "
            f"the limit is {request.max_gb:g} GB. If this is right, raise it with --max-gb."
        )


def matrix_bytes(rows: int, columns: int, n_entries: int | None = None) -> int:
    """Return the size of a matrix: of all its numbers, or of the entries of a sparse one."""
    if n_entries is None:
        return NUMBER * rows * columns
    return NUMBER * (rows + 3 * n_entries)


def declared_bytes(file: BinaryIO) -> int:
    """Return what the headers of a NumPy file say, of one array or of an archive."""
    if not zipfile.is_zipfile(file):
        file.seek(0)
        return _array_bytes(file)
    total = 0
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                total += _array_bytes(member)
    return total


def _array_bytes(file: Any) -> int:
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:  # of records with names in all languages; refused where arrays are read
        return 0
    shape, _, dtype = read(file)
    return math.prod(shape) * int(dtype.itemsize)


def parquet_bytes(file: Any, pyarrow: Any) -> int:
    """Return the size of the table of a Parquet file."""
    facts = pyarrow.ParquetFile(file).metadata
    return matrix_bytes(int(facts.num_rows), int(facts.num_columns))


def hdf_bytes(path: Any, h5py: Any) -> int:
    """Return the size of all arrays of an HDF5 file."""
    sizes: list[int] = []

    def add(_: str, found: Any) -> None:
        if isinstance(found, h5py.Dataset) and found.shape is not None:
            sizes.append(math.prod(found.shape) * int(found.dtype.itemsize))

    with h5py.File(path, "r") as file:
        file.visititems(add)
    return sum(sizes)
