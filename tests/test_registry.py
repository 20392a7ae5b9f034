"""The registry is the only list of methods: what `linkwise` exports follows from it."""

from __future__ import annotations

import ast
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

import linkwise
from linkwise import registry


@pytest.mark.parametrize("Method", linkwise.METHODS.values(), ids=linkwise.METHODS)
def test_type_checkers_see_every_method(Method):
    tree = ast.parse(Path(registry.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    exported = {name.name for node in imports for name in node.names if name.asname == name.name}
    line = f"from {Method.__module__} import {Method.__name__} as {Method.__name__}"
    assert Method.__name__ in exported, f"Add to registry.py: {line}"


def test_every_entry_is_of_the_class_that_it_names():
    for name, key in linkwise.METHODS.keys_by_class.items():
        assert linkwise.METHODS[key].__name__ == name


def test_parameters_are_known_without_an_import():
    for key, Method in linkwise.METHODS.items():
        found = linkwise.METHODS.fields(key)
        assert found is not None
        assert set(found) == set(signature(Method).parameters)


def test_public_names_are_those_of_the_registry_and_six_more():
    methods = {Method.__name__ for Method in linkwise.METHODS.values()}
    others = {"Affinity", "ApproximateNeighbors", "ConflictError", "Constraints", "Prepared"}
    assert set(linkwise.__all__) == {*methods, *others, "METHODS", "Result", "__version__"}
    assert set(linkwise.__all__) <= set(dir(linkwise))
    for name in linkwise.__all__:
        assert getattr(linkwise, name) is not None


def test_a_name_that_does_not_exist():
    with pytest.raises(AttributeError, match="has no attribute 'Nutc'"):
        linkwise.Nutc  # noqa: B018


def test_importing_linkwise_imports_no_numbers():
    script = """
import sys, linkwise
linkwise.__version__, hasattr(linkwise, "__wrapped__")
print("numpy" in sys.modules, linkwise.METHODS["ncut"].__name__)
from linkwise import *
print(NCut is METHODS["ncut"], Constraints.__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["False NCut", "True Constraints"]
