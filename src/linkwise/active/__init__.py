"""Active clustering: which pairs of samples to ask about, and a session that keeps the answers.

The modules, each of which imports only those above it::

    answers      answers -> Constraints
    entail       what answers entail, the number of clusters included
    model        Model: the estimator, on prepared data with warm starts
    regions      small parts of clusters
    hypotheses   Hypotheses: candidate partitions of Auto; Beliefs: the same, given answers
    numbers      the number of clusters, if it is unknown
    fits         Fits: the clusterings by Auto under the answers, each found once
    state        State: what a strategy may look at
    forest       Forest: similarity of samples by the leaves that they share
    strategies   random, explore, uncertainty
    spectral     xu, boundary: strategies that look at eigenvectors
    representatives  the samples that questions are about
    committee    committee: the strategy that tells hypotheses apart
    packed       labels as text for a file
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

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# What is not asked for is not imported: the server of the annotation page needs only answers, and
# what clusters takes seconds and 150 MB.
_HOME = {
    "Answer": "linkwise.active.answers",
    "Asked": "linkwise.active.oracles",
    "Curve": "linkwise.active.simulate",
    "ErrorEstimate": "linkwise.active.text_oracle",
    "NoisyOracle": "linkwise.active.simulate",
    "OracleError": "linkwise.active.oracles",
    "Proposal": "linkwise.active.committee",
    "ReviewSession": "linkwise.active.review",
    "STRATEGIES": "linkwise.active.session",
    "Session": "linkwise.active.session",
    "State": "linkwise.active.state",
    "TextOracle": "linkwise.active.text_oracle",
    "TruthOracle": "linkwise.active.simulate",
    "UnreadableReplyError": "linkwise.active.prompts",
    "ask_oracle": "linkwise.active.oracles",
    "parse_reply": "linkwise.active.prompts",
    "simulate": "linkwise.active.simulate",
}

if TYPE_CHECKING:
    from linkwise.active.answers import Answer
    from linkwise.active.committee import Proposal
    from linkwise.active.oracles import Asked, OracleError, ask_oracle
    from linkwise.active.prompts import UnreadableReplyError, parse_reply
    from linkwise.active.review import ReviewSession
    from linkwise.active.session import STRATEGIES, Session
    from linkwise.active.simulate import Curve, NoisyOracle, TruthOracle, simulate
    from linkwise.active.state import State
    from linkwise.active.text_oracle import ErrorEstimate, TextOracle
else:

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first used."""
        if name not in _HOME:
            raise AttributeError(f"module 'linkwise.active' has no attribute {name!r}")
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value

    class _Package(ModuleType):
        """The package, in which `simulate` is the function, also when its module is imported."""

        def __setattr__(self, name: str, value: Any) -> None:
            if not (name in _HOME and isinstance(value, ModuleType)):
                super().__setattr__(name, value)

    sys.modules[__name__].__class__ = _Package


__all__ = [
    "STRATEGIES",
    "Answer",
    "Asked",
    "Curve",
    "ErrorEstimate",
    "NoisyOracle",
    "OracleError",
    "Proposal",
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


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
