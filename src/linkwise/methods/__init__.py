"""The methods, one file each, and `METHODS`: the only place where they are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.methods.auto import Auto
from linkwise.methods.ccl import CCL
from linkwise.methods.ccsr import CCSR
from linkwise.methods.clpp import ConstrainedLPP
from linkwise.methods.cosc import COSC
from linkwise.methods.cpca import ConstrainedPCA
from linkwise.methods.csc import CSC
from linkwise.methods.cscgfhf import CSCGFHF
from linkwise.methods.csp import CSP
from linkwise.methods.cut import ConstrainedCut
from linkwise.methods.e2cp import E2CP
from linkwise.methods.fastge import FastGE
from linkwise.methods.gfhf import GFHF
from linkwise.methods.gp import GPAffinity
from linkwise.methods.llgc import LLGC
from linkwise.methods.ncut import NCut
from linkwise.methods.poisson import Poisson
from linkwise.methods.sclc import SCLC
from linkwise.methods.signed import SignedCSC
from linkwise.methods.sl import SpectralLearning
from linkwise.methods.srcp import SRCP
from linkwise.methods.sskk import SSKK

if TYPE_CHECKING:
    from linkwise.methods._base import ConstrainedClusterer

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
    "Auto",
    "ConstrainedCut",
    "ConstrainedLPP",
    "ConstrainedPCA",
    "FastGE",
    "GPAffinity",
    "NCut",
    "Poisson",
    "SignedCSC",
    "SpectralLearning",
]

METHODS: dict[str, type[ConstrainedClusterer]] = {
    # The default: chooses by itself
    "auto": Auto,
    # Baseline, and constraints written into the affinity
    "ncut": NCut,
    "sl": SpectralLearning,
    "csc": CSC,
    # Constraints propagated over the graph
    "srcp": SRCP,
    "e2cp": E2CP,
    "gp": GPAffinity,
    # Constraints in the criterion
    "signed": SignedCSC,
    "csp": CSP,
    "sclc": SCLC,
    "fastge": FastGE,
    "ccsr": CCSR,
    # Every constraint satisfied
    "cosc": COSC,
    "cut": ConstrainedCut,
    # Label propagation
    "gfhf": GFHF,
    "llgc": LLGC,
    "poisson": Poisson,
    "cscgfhf": CSCGFHF,
    # Linear projections
    "cpca": ConstrainedPCA,
    "clpp": ConstrainedLPP,
    # Kernel k-means
    "sskk": SSKK,
    # Hierarchical
    "ccl": CCL,
}
