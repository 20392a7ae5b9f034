"""Methods and their parameters, as typed: read from the registry and the signatures."""

from __future__ import annotations

import os
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from linkwise._hints import hint
from linkwise._optional import require
from linkwise._params import StrOptions
from linkwise.cli import loading
from linkwise.cli.console import BadInput
from linkwise.cli.requests import AskRequest, CompareRequest
from linkwise.graph import Affinity
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from linkwise.cli.requests import ClusterRequest, DataRequest
    from linkwise.graph import Prepared
    from linkwise.methods import ConstrainedClusterer

    Method = type[ConstrainedClusterer]

# These have options of their own.
RESERVED = {"n_clusters": "-k", "random_state": "--seed"}
GRAPH_PREFIX = "affinity__"
NAMED_VALUES = {"true": True, "false": False, "none": None}


def find_method(typed: str) -> Method:
    """Return a method by its key, or its class name in any case."""
    return METHODS[loading.key_of(typed)]


def key_of(Method: Method) -> str:
    """Return the key of a method in the registry."""
    return METHODS.keys_by_class[Method.__name__]


def needs_features_for(request: DataRequest) -> bool:
    """Whether the methods of a command have to see features, also where a graph is beside them."""
    if isinstance(request, CompareRequest) or getattr(request, "method", None) is None:
        return False
    return any(needs_features(Method, chosen) for Method, chosen in _chosen(request))


def accepts_contradictions(request: DataRequest) -> bool:
    """Whether a method of a command accepts constraints that cannot all hold."""
    if isinstance(request, AskRequest):
        return False
    return any(Method(**chosen).accepts_contradictions for Method, chosen in _chosen(request))


def _chosen(request: DataRequest) -> list[tuple[Method, dict[str, Any]]]:
    """Return the methods of a command with their settings."""
    if isinstance(request, CompareRequest):
        chosen = {loading.key_of(key) for key in request.methods} or set(METHODS)
        methods = {key: METHODS[key] for key in METHODS if key in chosen}
        settings = settings_for(methods, request.settings)
        return [(methods[key], settings[key]) for key in methods]
    method, texts = getattr(request, "method", None), getattr(request, "settings", ())
    if method is None:
        return []
    Method = find_method(method)
    return [(Method, parse_settings(texts, Method))]


def settings_for(chosen: Mapping[str, Method], texts: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Give each method the settings that it has; every setting must concern some method."""
    found: dict[str, dict[str, Any]] = {}
    used: set[str] = set()
    for key, Method in chosen.items():
        valid = parameters_of(Method)
        own = [
            text
            for text in texts
            if text.partition("=")[0].strip() in valid
            or (text.startswith(GRAPH_PREFIX) and takes_graph(Method))
        ]
        found[key] = parse_settings(own, Method)
        used |= set(own)
    for text in texts:
        if text not in used:
            parse_settings([text], next(iter(chosen.values())))
    return found


def takes_graph(Method: Method) -> bool:
    """Whether a method accepts a precomputed graph."""
    return "affinity" in signature(Method).parameters


def needs_features(Method: Method, settings: Mapping[str, Any] | None = None) -> bool:
    """Whether a method with these settings has to see the features themselves."""
    return not takes_graph(Method) or bool(Method(**(settings or {})).needs_features)


def parameters_of(Method: type[Any]) -> dict[str, Parameter]:
    """Return the parameters that ``--set`` may change."""
    hidden = {*RESERVED, "affinity"}
    return {k: p for k, p in signature(Method).parameters.items() if k not in hidden}


def scales_features(Method: Method) -> bool:
    """Whether a method chooses a scaling of the features itself."""
    return "scaling" in signature(Method).parameters


def parse_settings(texts: Iterable[str], Method: Method) -> dict[str, Any]:
    """Turn ``name=value`` texts into checked parameters of a method."""
    settings: dict[str, Any] = {}
    graph: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise BadInput(f"--set {text}: write it as NAME=VALUE, for example --set hard=true.")
        if name in RESERVED:
            raise BadInput(f"--set {text}: use {RESERVED[name]} instead.")
        if name.startswith(GRAPH_PREFIX) and takes_graph(Method):
            short = name.removeprefix(GRAPH_PREFIX)
            graph[short] = _parse(short, value, Affinity, prefix=GRAPH_PREFIX)
        else:
            settings[name] = _parse(name, value, Method)
    if graph:
        settings["affinity"] = Affinity(**graph)
        _validate(settings["affinity"], "--set affinity__...")
    _validate(Method(**settings), "--set")
    return settings


def _parse(name: str, text: str, owner: type[Any], *, prefix: str = "") -> Any:
    valid = parameters_of(owner)
    if name not in valid:
        if not prefix:
            graph = "affinity" in signature(owner).parameters
            raise BadInput(loading.no_parameter(name, owner.__name__, list(valid), graph=graph))
        # Compared without the prefix, which would make all names similar.
        meant = hint(name, valid).replace(" '", f" '{prefix}")
        shown = ", ".join(prefix + known for known in valid)
        raise BadInput(
            f"--set {prefix}{name}: {owner.__name__} has no such parameter.{meant} It has: {shown}."
        )
    allowed = owner._parameter_constraints.get(name, [])
    texts = [option for rule in allowed if isinstance(rule, StrOptions) for option in rule.options]
    if text in texts:
        return text
    if text.lower() in NAMED_VALUES:
        return NAMED_VALUES[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _validate(estimator: Any, place: str) -> None:
    try:
        estimator._validate_params()
    except ValueError as error:
        raise BadInput(f"{place}: {error}") from error


def build(
    Method: Method,
    settings: Mapping[str, Any],
    prepared: Prepared,
    *,
    n_clusters: int | str | None,
    request: ClusterRequest | CompareRequest,
) -> ConstrainedClusterer:
    """Return the estimator that was asked for, to be fitted to the prepared data."""
    given = {**settings, "n_clusters": n_clusters, "random_state": request.seed}
    valid = signature(Method).parameters
    if request.threads is not None and "n_jobs" in valid:
        given.setdefault("n_jobs", request.threads)
    if prepared.is_graph and not takes_graph(Method):
        usable = ", ".join(key for key, other in METHODS.items() if takes_graph(other))
        raise BadInput(
            f"--method {key_of(Method)} needs features, but DATA is a graph. Methods that take "
            f"one: {usable}."
        )
    if prepared.is_graph and "affinity" in given:
        raise BadInput("--set affinity__...: DATA is a graph already; leave it out.")
    given["affinity"] = prepared.affinity
    return Method(**{name: value for name, value in given.items() if name in valid})


def limit_threads(threads: int | None) -> None:
    """Let numerical libraries use at most so many threads, for the rest of the process."""
    if threads is None:
        return
    threads = min(threads, os.cpu_count() or 1)
    numba = require("numba", extra="cli", purpose="--threads")
    require("threadpoolctl", extra="cli", purpose="--threads").threadpool_limits(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
