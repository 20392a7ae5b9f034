"""linkwise: clustering that respects what its owner knows.

Data and a little knowledge go in (pairs that belong together, pairs that do not, some labels); a
clustering that respects them comes out. Start with :class:`Constraints` and :class:`Auto`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from linkwise._version import __version__ as __version__

# numpy, scipy, scikit-learn and numba take seconds to import. What is not asked for is not
# imported, so that `linkwise --help` answers at once. Public names that are not here are methods.
_HOME = {
    "Affinity": "linkwise.graph",
    "ApproximateNeighbors": "linkwise.graph",
    "ConflictError": "linkwise.exceptions",
    "Constraints": "linkwise.constraints",
    "METHODS": "linkwise.registry",
    "Prepared": "linkwise.graph",
    "Result": "linkwise.result",
}

if TYPE_CHECKING:  # type checkers see every name, and misspelt ones
    from linkwise.constraints import Constraints as Constraints
    from linkwise.exceptions import ConflictError as ConflictError
    from linkwise.graph import Affinity as Affinity
    from linkwise.graph import ApproximateNeighbors as ApproximateNeighbors
    from linkwise.graph import Prepared as Prepared
    from linkwise.registry import *
    from linkwise.result import Result as Result
else:

    def __getattr__(name: str) -> Any:
        """Import a public name, or a part of the library, when it is first used."""
        if name in _HOME:
            value = getattr(import_module(_HOME[name]), name)
        elif not name.startswith("_") and find_spec(f"linkwise.{name}") is not None:
            value = import_module(f"linkwise.{name}")
        elif name == "__all__":
            value = sorted({*_HOME, *_methods(), "__version__"})
        elif not name.startswith("_") and name in _methods():
            value = import_module("linkwise.registry").METHODS[_methods()[name]]
        else:
            raise AttributeError(f"module 'linkwise' has no attribute {name!r}")
        globals()[name] = value
        return value


def _methods() -> dict[str, str]:
    """Return the key of every method by the name of its class."""
    keys: dict[str, str] = import_module("linkwise.registry").METHODS.keys_by_class
    return keys


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_methods()})
