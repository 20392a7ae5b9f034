"""Every method: its import, and its entry in `METHODS`. All else is read from the class.

``linkwise`` exports what is imported here under its own name (``import X as X``): that is how type
checkers and :mod:`linkwise` itself know which names are public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.auto import Auto as Auto
from linkwise.methods.ccl import CCL as CCL
from linkwise.methods.ccsr import CCSR as CCSR
from linkwise.methods.clpp import ConstrainedLPP as ConstrainedLPP
from linkwise.methods.cosc import COSC as COSC
from linkwise.methods.cpca import ConstrainedPCA as ConstrainedPCA
from linkwise.methods.csc import CSC as CSC
from linkwise.methods.cscgfhf import CSCGFHF as CSCGFHF
from linkwise.methods.csp import CSP as CSP
from linkwise.methods.cut import ConstrainedCut as ConstrainedCut
from linkwise.methods.e2cp import E2CP as E2CP
from linkwise.methods.fastge import FastGE as FastGE
from linkwise.methods.gfhf import GFHF as GFHF
from linkwise.methods.gp import GPAffinity as GPAffinity
from linkwise.methods.llgc import LLGC as LLGC
from linkwise.methods.ncut import NCut as NCut
from linkwise.methods.poisson import Poisson as Poisson
from linkwise.methods.sclc import SCLC as SCLC
from linkwise.methods.signed import SignedCSC as SignedCSC
from linkwise.methods.sl import SpectralLearning as SpectralLearning
from linkwise.methods.srcp import SRCP as SRCP
from linkwise.methods.sskk import SSKK as SSKK

if TYPE_CHECKING:
    from linkwise.methods import ConstrainedClusterer

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
