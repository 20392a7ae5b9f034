"""Beyond one machine: the same methods on Dask (the extra ``dask``).

:class:`Prepared` is to a Dask array what :class:`linkwise.Prepared` is to an array: pass it to the
`fit` of a method on graphs, or of `Auto`.
"""

from __future__ import annotations

from linkwise.distributed.prepared import Prepared

__all__ = ["Prepared"]
