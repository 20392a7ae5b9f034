"""linkwise: clustering that respects what its owner knows.

Data and a little knowledge go in (pairs that belong together, pairs that do not, some labels); a
clustering that respects them comes out. Start with :class:`Constraints` and :class:`SignedCSC`.
"""

from linkwise._version import __version__
from linkwise.constraints import Constraints
from linkwise.exceptions import ConflictError
from linkwise.graph import Affinity
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
    "ConflictError",
    "ConstrainedCut",
    "ConstrainedLPP",
    "ConstrainedPCA",
    "Constraints",
    "FastGE",
    "GPAffinity",
    "NCut",
    "Poisson",
    "Result",
    "SignedCSC",
    "SpectralLearning",
    "__version__",
]
