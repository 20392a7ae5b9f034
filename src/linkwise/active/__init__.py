"""Active clustering: which pairs of samples to ask about, and a session that keeps the answers.

The modules, each of which imports only those above it::

    entail       what answers entail, the number of clusters included
    state        State: what a strategy may look at
    forest       Forest: similarity of samples by the leaves that they share
    strategies   random, explore, uncertainty
    spectral     xu, boundary: strategies that look at eigenvectors
    answers      answers -> Constraints
    model        Model: the estimator, on prepared data with warm starts
    journal      the file of answers
    session      STRATEGIES; Session: ask, answer, cluster again
    review       ReviewSession: the review queue of Linkage
    simulate     oracles and learning curves
"""

from __future__ import annotations

from linkwise.active.answers import Answer
from linkwise.active.review import ReviewSession
from linkwise.active.session import STRATEGIES, Session
from linkwise.active.simulate import Curve, NoisyOracle, TruthOracle, simulate
from linkwise.active.state import State

__all__ = [
    "STRATEGIES",
    "Answer",
    "Curve",
    "NoisyOracle",
    "ReviewSession",
    "Session",
    "State",
    "TruthOracle",
    "simulate",
]
