"""Asking good questions: which pairs of samples to ask about, and a session that keeps the answers.

The rooms, each of which knows only the ones above it::

    entail       what answers entail, the number of clusters included
    state        State: what a strategy may look at
    strategies   random, explore, uncertainty
    spectral     xu, boundary: strategies that look at eigenvectors
    journal      the file that keeps answers
    session      STRATEGIES; Session: ask, answer, cluster again
    simulate     oracles and learning curves
"""

from __future__ import annotations

from linkwise.active.session import STRATEGIES, Answer, Session
from linkwise.active.simulate import Curve, NoisyOracle, TruthOracle, simulate
from linkwise.active.state import State

__all__ = [
    "STRATEGIES",
    "Answer",
    "Curve",
    "NoisyOracle",
    "Session",
    "State",
    "TruthOracle",
    "simulate",
]
