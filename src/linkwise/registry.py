"""Every method: its import for type checkers, and its entry in `METHODS`.

All else is read from the class, which is imported when it is first used. ``linkwise`` exports what
is imported here under its own name (``import X as X``): that is how type checkers know it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise.auto import Auto as Auto
    from linkwise.linkage import Linkage as Linkage
    from linkwise.methods import ConstrainedClusterer
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


class Methods(Mapping[str, "type[ConstrainedClusterer]"]):
    """The class of every method by its key, imported when it is asked for."""

    def __init__(self, homes: dict[str, str]) -> None:
        self._homes = homes

    def __getitem__(self, key: str) -> type[ConstrainedClusterer]:
        module, _, name = self._homes[key].rpartition(".")
        method: type[ConstrainedClusterer] = getattr(import_module(module), name)
        return method

    def __contains__(self, key: object) -> bool:
        return key in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)

    def class_name(self, key: str) -> str:
        """Return the name of a method's class; imports nothing."""
        return self._homes[key].rpartition(".")[2]

    def fields(self, key: str) -> list[str] | None:
        """Return the parameters of a method by its source; None if its class is not there."""
        module, _, name = self._homes[key].rpartition(".")
        path = Path(__file__).parents[1].joinpath(*module.split(".")).with_suffix(".py")
        if not path.is_file():
            return None
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return [field for field in map(_field, node.body) if field]
        return None

    @property
    def keys_by_class(self) -> dict[str, str]:
        """The key of every method by the name of its class; imports nothing."""
        return {home.rpartition(".")[2]: key for key, home in self._homes.items()}


def _field(node: ast.stmt) -> str | None:
    """Return the name that a line of a class annotates, unless it is a class variable."""
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
        return None
    kind = ast.unparse(node.annotation)
    return None if kind.startswith(("ClassVar", "KW_ONLY")) else node.target.id


METHODS = Methods(
    {
        # The default: chooses by itself
        "auto": "linkwise.auto.estimator.Auto",
        # Baseline, and constraints written into the affinity
        "ncut": "linkwise.methods.ncut.NCut",
        "sl": "linkwise.methods.sl.SpectralLearning",
        "csc": "linkwise.methods.csc.CSC",
        # Constraints propagated over the graph
        "srcp": "linkwise.methods.srcp.SRCP",
        "e2cp": "linkwise.methods.e2cp.E2CP",
        "gp": "linkwise.methods.gp.GPAffinity",
        # Constraints in the criterion
        "signed": "linkwise.methods.signed.SignedCSC",
        "csp": "linkwise.methods.csp.CSP",
        "sclc": "linkwise.methods.sclc.SCLC",
        "fastge": "linkwise.methods.fastge.FastGE",
        "ccsr": "linkwise.methods.ccsr.CCSR",
        # Every constraint satisfied
        "cosc": "linkwise.methods.cosc.COSC",
        "cut": "linkwise.methods.cut.ConstrainedCut",
        # Label propagation
        "gfhf": "linkwise.methods.gfhf.GFHF",
        "llgc": "linkwise.methods.llgc.LLGC",
        "poisson": "linkwise.methods.poisson.Poisson",
        "cscgfhf": "linkwise.methods.cscgfhf.CSCGFHF",
        # Linear projections
        "cpca": "linkwise.methods.cpca.ConstrainedPCA",
        "clpp": "linkwise.methods.clpp.ConstrainedLPP",
        # Kernel k-means
        "sskk": "linkwise.methods.sskk.SSKK",
        # Hierarchical
        "ccl": "linkwise.methods.ccl.CCL",
        # Thousands of small clusters, their number found
        "linkage": "linkwise.linkage.estimator.Linkage",
    }
)
