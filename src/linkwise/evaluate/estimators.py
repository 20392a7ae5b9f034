"""What is compared: methods of the registry, estimators, and any function that returns labels."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, isclass, signature, unwrap
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from linkwise._hints import hint
from linkwise.methods import ConstrainedClusterer
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from linkwise._types import AnyArray
    from linkwise.constraints import Constraints
    from linkwise.evaluate.data import Problem

GIVEN = ("X", "W", "constraints", "n_clusters", "random_state")
CODE = re.compile(r" \(code [0-9a-f]{12}(, closure)?\)")  # of a function, in a description


@dataclass(frozen=True)
class NamedEstimator:
    """An estimator or a function, and its name in tables and figures.

    Parameters
    ----------
    name : str
        How rows, tables and figures call it.
    estimator : estimator or callable
        An estimator with `fit_predict` is cloned for each fit. Its `n_clusters` and
        `random_state` are set, also inside a pipeline. If its `affinity` is None it gets the
        graph of the data set, which is built once for all.
        A function gets what it names of `X`, `W`, `constraints`, `n_clusters` and
        `random_state`; if its required parameters have other names it is called as
        ``function(X, constraints, n_clusters, random_state)``. It returns labels, or an object
        that has `labels`.
    """

    name: str
    estimator: Any

    @property
    def wants_graph(self) -> bool:
        """Whether it works on the graph of the data set."""
        if hasattr(self.estimator, "fit_predict"):
            return _takes_prepared(self.estimator)
        return "W" in _named(self.estimator)

    def fit_call(
        self, data: Problem, constraints: Constraints, random_state: int
    ) -> Callable[[], Any]:
        """Return the fit as a call without arguments.

        Methods of linkwise get the prepared data, without what earlier fits have found: rows do
        not depend on the order of the fits. Others get copies, since they may change them.
        """
        if not hasattr(self.estimator, "fit_predict"):
            return self._function_call(data, constraints, random_state)
        model = clone(self.estimator)
        takes_graph = _takes_prepared(model)
        if data.X is None and not (takes_graph and not model.needs_features):
            self._raise_needs_features()
        settings: dict[str, Any] = dict.fromkeys(_cluster_counts(model), data.n_clusters)
        # Those of steps and parts included
        names = [name for name in model.get_params() if name.rpartition("__")[2] == "random_state"]
        settings |= dict.fromkeys(names, random_state)
        model.set_params(**settings)
        extra = {"constraints": constraints} if _takes_constraints(model) else {}
        # A given graph brings no features.
        is_enough = takes_graph and not (data.W.is_graph and _uses_features(model, data))
        X = data.W.cold() if is_enough else copied(data.X)
        return partial(model.fit_predict, X, **extra)

    def _function_call(
        self, data: Problem, constraints: Constraints, random_state: int
    ) -> Callable[[], Any]:
        named = _named(self.estimator)
        if data.X is None and (not named or "X" in named):
            self._raise_needs_features()
        W = None if data.W is None else data.W.W
        values = (data.X, W, constraints, data.n_clusters, random_state)
        given = dict(zip(GIVEN, values, strict=True))
        if named:
            return partial(self.estimator, **{name: copied(given[name]) for name in named})
        return partial(self.estimator, copied(data.X), constraints, data.n_clusters, random_state)

    def _raise_needs_features(self) -> NoReturn:
        raise ValueError(f"{self.name} needs the features X, but this data set has only a graph.")


def copied(value: Any) -> Any:
    """Return a copy of an array, in the memory of this process; other things as they are."""
    if isinstance(value, np.ndarray):
        return np.array(value)
    if issparse(value):
        csr = csr_array(value)
        parts = (np.array(csr.data), np.array(csr.indices), np.array(csr.indptr))
        return csr_array(parts, shape=csr.shape)
    return value


def as_labels(found: Any, n_samples: int) -> AnyArray:
    """Return what a fit returned as labels."""
    labels = np.asarray(getattr(found, "labels", found))
    if labels.shape != (n_samples,):
        message = f"The answer has shape {labels.shape}; labels of {n_samples} samples were asked."
        raise ValueError(message)
    return labels


def named_estimators(given: Any) -> list[NamedEstimator]:
    """Return the estimators from any of the forms that `learning_curve` takes."""
    if isinstance(given, str) or callable(given) or not isinstance(given, Iterable):
        given = [given]
    pairs = given.items() if isinstance(given, Mapping) else map(_pair, given)
    found = [NamedEstimator(str(name), _as_estimator(value)) for name, value in pairs]
    names = [one.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or not found:
        what = "There is no method" if twice is None else f"Two methods are called {twice!r}"
        message = f"{what}. Give registry keys, or pairs of a name and an estimator or function."
        raise ValueError(message)
    return found


def _pair(item: Any) -> tuple[str, Any]:
    if isinstance(item, NamedEstimator):
        return item.name, item.estimator
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return item
    if isinstance(item, str):
        return item, item
    name = getattr(item, "__name__", None) or getattr(item, "func", item).__class__.__name__
    return name, item


def _as_estimator(value: Any) -> Any:
    """Return an estimator or a function."""
    if isinstance(value, str):
        if value not in METHODS:
            near = hint(value, METHODS, listed=METHODS)
            raise ValueError(f"No method is registered as {value!r}.{near}")
        return METHODS[value]()
    made = value() if isclass(value) else value
    if not callable(made) and not (hasattr(made, "fit_predict") and hasattr(made, "get_params")):
        raise TypeError(
            f"A method is a registry key, an estimator with fit_predict, or a function; "
            f"got {type(made).__name__}."
        )
    return made


def _named(function: Any) -> list[str]:
    """Return what a function names of the things given; nothing if it is to be called in order."""
    try:
        parameters = signature(function).parameters.values()
    except ValueError:  # some compiled functions have no signature
        return []
    by_name = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    named = [p.name for p in parameters if p.name in GIVEN and p.kind in by_name]
    others = [p for p in parameters if p.default is p.empty and p.name not in named]
    if any(p.kind not in {p.VAR_POSITIONAL, p.VAR_KEYWORD} for p in others):
        return []
    return named


def _takes_prepared(model: Any) -> bool:
    """Whether a method works on the graph of the data set: it uses one, and names no other."""
    return isinstance(model, ConstrainedClusterer) and getattr(model, "affinity", "") is None


def _uses_features(model: Any, data: Problem) -> bool:
    return data.X is not None and "X" in model._arguments


def _takes_constraints(model: Any) -> bool:
    if isinstance(model, ConstrainedClusterer):
        return "constraints" in model._arguments
    parameters = signature(model.fit).parameters.values()
    # A pipeline takes anything, and routes it or raises.
    return any(p.name == "constraints" or p.kind == p.VAR_KEYWORD for p in parameters)


def _cluster_counts(model: Any) -> list[str]:
    """Return the name of the parameter that sets the number of clusters, if there is one."""
    steps = getattr(model, "steps", None)  # of a pipeline, whose last step clusters
    name = f"{steps[-1][0]}__n_clusters" if steps else "n_clusters"
    return [name] if name in model.get_params() else []


def described(thing: Any) -> str:
    """Say what an estimator or a function is, in the same words in every process.

    Of a function, a hash of its code is part of it. The functions that it calls and the values
    that it takes from outside are not seen; closures and lambdas are marked.
    """
    if isinstance(thing, partial):
        words = [described(thing.func), *map(repr, thing.args)]
        words += [f"{name}={value!r}" for name, value in sorted(thing.keywords.items())]
        text = f"partial({', '.join(words)})"
    elif hasattr(thing, "get_params"):
        shown = [f"{name}={value!r}" for name, value in sorted(thing.get_params().items())]
        text = f"{type(thing).__module__}.{type(thing).__qualname__}({', '.join(shown)})"
    else:
        named = thing if hasattr(thing, "__qualname__") else type(thing)
        text = f"{named.__module__}.{named.__qualname__}{_code(thing)}"
    return _without_addresses(text)


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x[0-9a-fA-F]+|\s+", lambda match: " " if match[0].isspace() else "", text)


def by_name_only(description: str) -> str:
    """Return a description without the hashes of code."""
    return CODE.sub("", description)


def is_partly_seen(description: str) -> bool:
    """Whether a description is of a function that may depend on values from outside."""
    return any(match[1] for match in CODE.finditer(description))


def _code(thing: Any) -> str:
    """Return a hash of the code of a function, in words; nothing if it has no code in Python."""
    function = thing if hasattr(thing, "__qualname__") else type(thing).__call__
    layers = [
        layer
        for layer in dict.fromkeys((function, unwrap(function)))
        if isinstance(getattr(layer, "__code__", None), CodeType)
    ]
    if not layers:
        return ""
    digest = hashlib.sha256("\n".join(map(_function_words, layers)).encode()).hexdigest()[:12]
    is_open = any(f.__name__ == "<lambda>" or getattr(f, "__closure__", None) for f in layers)
    return f" (code {digest}{', closure' if is_open else ''})"


def _function_words(function: Any) -> str:
    code = function.__code__
    if code.co_consts and code.co_consts[0] == function.__doc__:
        code = code.replace(co_consts=(None, *code.co_consts[1:]))  # words about it do not count
    defaults = (getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__"))
    return " ".join([_words(code), *(_without_addresses(repr(value)) for value in defaults)])


def _words(constant: Any) -> str:
    """Spell out code and what it holds, line numbers and addresses left out."""
    if isinstance(constant, CodeType):
        parts = (constant.co_code, constant.co_exceptiontable, constant.co_consts)
        names = (constant.co_names, constant.co_freevars, constant.co_cellvars)
        return _words((*parts, *names))
    if isinstance(constant, tuple):
        return f"({', '.join(map(_words, constant))})"
    if isinstance(constant, frozenset):  # its order differs between processes
        return f"{{{', '.join(sorted(map(_words, constant)))}}}"
    return repr(constant)
