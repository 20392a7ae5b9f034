"""The methods, one file each, and `METHODS`: the only place where they are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.methods.csc import CSC
from linkwise.methods.ncut import NCut
from linkwise.methods.signed import SignedCSC
from linkwise.methods.sl import SpectralLearning

if TYPE_CHECKING:
    from linkwise.methods._base import ConstrainedClusterer

__all__ = ["CSC", "METHODS", "NCut", "SignedCSC", "SpectralLearning"]

METHODS: dict[str, type[ConstrainedClusterer]] = {
    # Baseline, and constraints written into the affinity
    "ncut": NCut,
    "sl": SpectralLearning,
    "csc": CSC,
    # Constraints in the criterion
    "signed": SignedCSC,
}
