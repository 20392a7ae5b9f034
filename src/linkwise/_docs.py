"""Docstrings that inherit: what many estimators share is described once, in a base class."""

from __future__ import annotations

import re
from inspect import cleandoc, signature

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
# Attributes that come with a parameter: estimators without it do not have them.
COMES_WITH = {"affinity_matrix_": "affinity", "affinity_": "affinity"}


def inherit_docs(cls: type) -> None:
    """Complete the numpydoc docstring of a class from those of its base classes.

    A parameter that is named without a type gets the description of the nearest base class that
    has one. Attributes that base classes describe come first, those of the class itself last.
    """
    if not vars(cls).get("__doc__"):  # none written, or python -OO
        return
    parameters: dict[str, str] = {}
    attributes: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        summary, sections = _parsed(vars(base).get("__doc__") or "")
        own = _entries(sections.pop("Parameters", ""))
        own_attributes = _entries(sections.pop("Attributes", ""))
        parameters |= {name: entry for name, entry in own.items() if entry != name}
        attributes |= own_attributes
    for name, parameter in COMES_WITH.items():
        if parameter not in signature(cls).parameters and name not in own_attributes:
            attributes.pop(name, None)
    described = [parameters.get(name, name) for name in own]
    lists = {"Parameters": described, "Attributes": attributes.values()}
    bodies = {name: "\n".join(entries) for name, entries in lists.items()} | sections
    titled = [f"{name}\n{'-' * len(name)}\n{body}" for name, body in bodies.items() if body]
    cls.__doc__ = "\n\n".join([summary, *titled]) + "\n"


def _parsed(doc: str) -> tuple[str, dict[str, str]]:
    """Return what comes before the first section, and the sections by name."""
    summary, *rest = SECTION.split(cleandoc(doc))
    bodies = (body.strip("\n") for body in rest[1::2])
    return summary.strip("\n"), dict(zip(rest[::2], bodies, strict=True))


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a list of parameters or attributes by name."""
    entries = re.split(r"\n(?=\S)", section) if section.strip() else []
    return {entry.split(maxsplit=1)[0]: entry for entry in entries}
