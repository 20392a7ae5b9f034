"""``linkwise methods``: the registry as a table. All facts are attributes of the classes."""

from __future__ import annotations

from inspect import getdoc, signature
from typing import TYPE_CHECKING, Any

from linkwise.cli.options import needs_features, parameters_of, takes_graph
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from linkwise.cli.console import Console
    from linkwise.cli.options import Method

HEADER = ("key", "class", "data", "knowledge", "constraints", "scale", "paper")


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
    return {
        "key": key,
        "class": Method.__name__,
        "family": Method.family,
        "data": "features or graph" if takes_graph(Method) else "features",
        "knowledge": ", ".join(Method.takes) or "none",
        "constraints": _enforcement(Method),
        "scale": _scale(Method),
        "paper": Method.paper or "-",
        "idea": (getdoc(Method) or "").partition("\n")[0],
        "parameters": list(parameters_of(Method)),
    }


def _enforcement(Method: Method) -> str:
    if not Method.takes:
        return "-"
    can_be_hard = "hard" in signature(Method).parameters
    return Method.enforcement + (", or hard=true" if can_be_hard else "")


def _scale(Method: Method) -> str:
    """Return up to what size a method goes: sparse ones have no limit of their own."""
    if Method.max_samples is not None:
        return f"{Method.max_samples:,} samples"
    return "large tables" if needs_features(Method) else "large sparse graphs"
