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
    oracles      ask_oracle: anything answers, nothing is lost if it fails
    review       ReviewSession: the review queue of Linkage
    simulate     answers by true labels; learning curves
    prompts      questions as text, replies as answers
    replies      a file of replies
    text_oracle  TextOracle: a function from a prompt to a text answers
"""

from __future__ import annotations

from linkwise.active.answers import Answer
from linkwise.active.oracles import Asked, OracleError, ask_oracle
from linkwise.active.prompts import UnreadableReplyError, parse_reply
from linkwise.active.review import ReviewSession
from linkwise.active.session import STRATEGIES, Session
from linkwise.active.simulate import Curve, NoisyOracle, TruthOracle, simulate
from linkwise.active.state import State
from linkwise.active.text_oracle import ErrorEstimate, TextOracle

__all__ = [
    "STRATEGIES",
    "Answer",
    "Asked",
    "Curve",
    "ErrorEstimate",
    "NoisyOracle",
    "OracleError",
    "ReviewSession",
    "Session",
    "State",
    "TextOracle",
    "TruthOracle",
    "UnreadableReplyError",
    "ask_oracle",
    "parse_reply",
    "simulate",
]
