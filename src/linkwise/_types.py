"""Names for the arrays that travel through the library. For annotations only."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

Floats: TypeAlias = NDArray[np.float64]
Singles: TypeAlias = NDArray[np.float32]
AnyFloats: TypeAlias = NDArray[np.floating[Any]]  # kernels for single and double precision
Ints: TypeAlias = NDArray[np.intp]  # labels, indices of samples
Int8s: TypeAlias = NDArray[np.int8]  # signs
Int32s: TypeAlias = NDArray[np.int32]  # vertices and clusters in compiled searches
Int64s: TypeAlias = NDArray[np.int64]  # row pointers
AnyInts: TypeAlias = NDArray[np.integer[Any]]
UInt32s: TypeAlias = NDArray[np.uint32]
UInt64s: TypeAlias = NDArray[np.uint64]
Bytes: TypeAlias = NDArray[np.uint8]
Bools: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
Graph: TypeAlias = csr_array | Floats  # symmetric, non-negative
Symmetric: TypeAlias = csr_array | Floats | LinearOperator
# Dense, sparse or an operator, where attributes of one kind are used: scipy has no types.
Matrix: TypeAlias = Any
