"""linkwise: clustering that respects what its owner knows.

Data and a little knowledge go in (pairs that belong together, pairs that do not, some labels); a
clustering that respects them comes out. Start with :class:`Constraints` and :class:`Auto`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from linkwise._version import __version__

if TYPE_CHECKING:
    from linkwise.constraints import Constraints
    from linkwise.exceptions import ConflictError
    from linkwise.graph import Affinity, ApproximateNeighbors, Prepared
    from linkwise.methods import (
        CCL,
        CCSR,
        COSC,
        CSC,
        CSCGFHF,
        CSP,
        E2CP,
        GFHF,
        LLGC,
        METHODS,
        SCLC,
        SRCP,
        SSKK,
        Auto,
        ConstrainedCut,
        ConstrainedLPP,
        ConstrainedPCA,
        FastGE,
        GPAffinity,
        NCut,
        Poisson,
        SignedCSC,
        SpectralLearning,
    )
    from linkwise.result import Result

__all__ = [
    "CCL",
    "CCSR",
    "COSC",
    "CSC",
    "CSCGFHF",
    "CSP",
    "E2CP",
    "GFHF",
    "LLGC",
    "METHODS",
    "SCLC",
    "SRCP",
    "SSKK",
    "Affinity",
    "ApproximateNeighbors",
    "Auto",
    "ConflictError",
    "ConstrainedCut",
    "ConstrainedLPP",
    "ConstrainedPCA",
    "Constraints",
    "FastGE",
    "GPAffinity",
    "NCut",
    "Poisson",
    "Prepared",
    "Result",
    "SignedCSC",
    "SpectralLearning",
    "__version__",
]

# numpy, scipy, scikit-learn and numba take seconds to import. What is not asked for is not
# imported, so that `linkwise --help` answers at once. Names that are not here are methods.
_HOME = {
    "Constraints": "linkwise.constraints",
    "ConflictError": "linkwise.exceptions",
    "Affinity": "linkwise.graph",
    "ApproximateNeighbors": "linkwise.graph",
    "Prepared": "linkwise.graph",
    "Result": "linkwise.result",
}


def _imported(name: str) -> Any:
    """Import a public name, or a part of the library, when it is first used."""
    if name in __all__:
        value = getattr(import_module(_HOME.get(name, "linkwise.methods")), name)
    elif not name.startswith("_") and find_spec(f"linkwise.{name}") is not None:
        value = import_module(f"linkwise.{name}")
    else:
        message = f"module 'linkwise' has no attribute {name!r}"
        raise AttributeError(message)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # type checkers see the imports above, and misspelt names
    __getattr__ = _imported


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
