"""``linkwise methods``: the registry as a table. All facts are read from the classes."""

from __future__ import annotations

import re
from inspect import getdoc, signature
from typing import TYPE_CHECKING, Any

from linkwise.cli.options import needs_features, parameters_of, takes_graph
from linkwise.methods._labels import LabelPropagator
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from linkwise.cli.console import Console

__all__ = ["facts_of", "run"]

HEADER = ("key", "class", "data", "knowledge", "constraints", "scale", "paper")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def run(console: Console) -> int:
    """Print the table."""
    rows = [facts_of(key) for key in METHODS]
    console.summary({"command": "methods", "methods": rows})
    if not console.json:
        console.table(HEADER, [[str(row[name]) for name in HEADER] for row in rows])
    return 0


def facts_of(key: str) -> dict[str, Any]:
    """Return what the class of a method tells about it."""
    Method = METHODS[key]
    text = getdoc(Method) or ""
    return {
        "key": key,
        "class": Method.__name__,
        "data": "features or graph" if takes_graph(Method) else "features",
        "knowledge": _knowledge(Method),
        "constraints": _strictness(Method),
        "scale": _scale(Method),
        "paper": _paper(text),
        "idea": text.partition("\n")[0],
        "parameters": list(parameters_of(Method)),
    }


def _knowledge(Method: Any) -> str:
    if "constraints" not in signature(Method.solve).parameters:
        return "none"
    # What is called a seed is a sample of known class: pairs can only stand in for labels.
    from_seeds = issubclass(Method, LabelPropagator) or "label_seeds" in vars(_module(Method))
    return "labels" if from_seeds else "pairs, labels"


def _module(Method: Any) -> Any:
    return __import__(Method.__module__, fromlist=["_"])


def _strictness(Method: Any) -> str:
    if "constraints" not in signature(Method.solve).parameters:
        return "-"
    if "hard" in signature(Method).parameters:
        return f"{Method.obeys}, or hard=true"
    return str(Method.obeys)


def _scale(Method: Any) -> str:
    """Return up to what size a method goes: sparse ones have no limit of their own."""
    limit = getattr(_module(Method), "MAX_GROUPS", None)  # dense in the samples
    if limit is not None:
        return f"{limit:,} samples"
    return "large tables" if needs_features(Method) else "large sparse graphs"


def _paper(text: str) -> str:
    """Return authors and year of the first reference."""
    _, _, references = text.partition("References\n----------\n")
    first = " ".join(references.partition("\n\n")[0].split())
    authors = [part.rsplit(" ", 1)[-1] for part in first.partition(":")[0].split(", ")]
    year = YEAR.search(first)
    if not first or year is None:
        return "-"
    shown = authors[0] if len(authors) == 1 else f"{authors[0]} et al."
    if len(authors) == 2:
        shown = f"{authors[0]} & {authors[1]}"
    return f"{shown} {year[0]}"
