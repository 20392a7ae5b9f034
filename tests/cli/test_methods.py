"""`linkwise methods` and `--set`: everything is read from the registry, nothing is listed twice."""

from __future__ import annotations

import json
from inspect import Parameter, signature
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from linkwise import METHODS, Prepared

pytest.importorskip("click")

from linkwise._params import StrOptions
from linkwise.cli import options
from linkwise.cli.requests import ClusterRequest

every_method = pytest.mark.parametrize("key", METHODS)


def test_the_table_has_every_method(linkwise):
    run = linkwise("methods")
    assert run.code == 0
    lines = run.out.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [
        [key, Method.__name__] for key, Method in METHODS.items()
    ]
    facts = {row["key"]: row for row in json.loads(linkwise("methods", "--json").out)["methods"]}
    assert facts["ncut"]["knowledge"] == "none"
    assert facts["gfhf"]["knowledge"] == "labels"
    assert facts["srcp"]["knowledge"] == "pairs, labels"
    assert facts["srcp"]["paper"] == "Fu et al. 2011"
    assert facts["e2cp"]["paper"] == "Lu & Ip 2010"
    assert facts["srcp"]["constraints"] == "soft, or hard=true"
    assert facts["cut"]["constraints"].startswith("hard")
    assert facts["cosc"]["constraints"] == "hard, or soft with violations"
    assert facts["cpca"]["data"] == "features"
    assert facts["signed"]["data"] == "features or graph"


@every_method
def test_every_default_can_be_typed(key):
    Method = METHODS[key]
    for name, parameter in options.parameters_of(Method).items():
        settings = options.parse_settings([f"{name}={parameter.default}"], Method)
        assert settings == {name: parameter.default}
        assert type(settings[name]) is type(parameter.default)


@every_method
def test_a_method_is_built_with_what_was_typed(key):
    Method = METHODS[key]
    request = ClusterRequest(data=Path("x.csv"), method=key, seed=7, threads=2)
    model = options.build(Method, {}, Prepared(np.eye(4)), n_clusters=3, request=request)
    assert model.n_clusters == 3
    assert model.random_state == 7
    assert getattr(model, "n_jobs", 2) == 2
    for name, parameter in signature(Method).parameters.items():
        assert parameter.kind is not Parameter.VAR_KEYWORD
        if name not in {"n_clusters", "random_state", "n_jobs"}:
            assert getattr(model, name) == parameter.default


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mu=0.5", 0.5),
        ("mu=2", 2),
        ("mu=1e-3", 1e-3),
        ("scale=paper", "paper"),
        ("hard=true", True),
        ("hard=False", False),
        (" solver =lowrank", "lowrank"),
    ],
)
def test_values(text, value):
    settings = options.parse_settings([text], METHODS["srcp"])
    (found,) = settings.values()
    assert found == value
    assert type(found) is type(value)


def test_an_allowed_word_stays_a_word():
    class Odd:
        _parameter_constraints: ClassVar = {"norm": [StrOptions({"none", "2"})], "size": [None]}

        def __init__(self, norm="2", size=None):
            pass

    assert options._parse("norm", "none", Odd) == "none"
    assert options._parse("norm", "2", Odd) == "2"
    assert options._parse("size", "none", Odd) is None


def test_the_graph_has_settings_too():
    settings = options.parse_settings(
        ["affinity__neighbors=None", "affinity__scale=xu", "affinity__m=3"], METHODS["signed"]
    )
    affinity = settings["affinity"]
    assert (affinity.neighbors, affinity.scale, affinity.m) == (None, "xu", 3)


def test_methods_are_found_by_key_and_by_class():
    assert options.find_method("srcp") is METHODS["srcp"]
    assert options.find_method("SRCP") is METHODS["srcp"]
    assert options.find_method("constrainedcut") is METHODS["cut"]


def test_what_needs_features_is_read_from_the_signature():
    assert options.needs_features(METHODS["cpca"])
    assert not options.needs_features(METHODS["signed"])
    assert options.needs_features(METHODS["cut"], {"objective": "kmeans"})
    assert not options.needs_features(METHODS["cut"], {"objective": "ncut"})
