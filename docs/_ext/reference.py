"""The API reference: a page for every public name, written from the library itself.

A new method or function is in the reference as soon as it is public; nothing is listed by hand.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkwise import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sphinx.application import Sphinx

FOLDER = Path(__file__).resolve().parents[1] / "reference"
# Public modules and the titles of their sections, in the order of the index. Methods come first.
MODULES = {
    "linkwise": "The library",
    "linkwise.constraints": "Constraints",
    "linkwise.graph": "Graphs and prepared data",
    "linkwise.linkage": "Many small clusters",
    "linkwise.metrics": "Metrics",
    "linkwise.active": "Questions and answers",
    "linkwise.evaluate": "Learning curves",
    "linkwise.plots": "Pictures",
    "linkwise.report": "Report",
    "linkwise.tl": "AnnData",
    "linkwise.datasets": "Data sets",
    "linkwise.distributed": "Many machines",
    "linkwise.exceptions": "Errors and warnings",
}
# What a reader looks for first.
CORE = ["linkwise.Constraints", "linkwise.Prepared", "linkwise.Affinity", "linkwise.Result"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before anything is read."""
    app.connect("builder-inited", write_reference, priority=100)
    app.connect("autodoc-process-docstring", escape_types, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def escape_types(*event: Any) -> None:
    """Keep ``(n_components_,)`` in a type from being read as a link. The text comes last."""
    lines = event[-1]
    for number, line in enumerate(lines):
        start, shape, rest = line.partition("of shape (")
        lines[number] = start + shape + re.sub(r"_(?=[,)])", r"\\_", rest)


def public_names(module: str) -> list[str]:
    """Return the public names of a module: its `__all__`, or the functions that it defines."""
    if find_spec(module) is None:
        return []  # a part of the library that is still to come
    namespace = import_module(module)
    if hasattr(namespace, "__all__"):
        return [name for name in namespace.__all__ if not name.startswith("__")]
    members = inspect.getmembers(namespace, inspect.isfunction)
    return [n for n, f in members if f.__module__ == module and not n.startswith("_")]


def home(module: str, name: str) -> str:
    """Return the full name under which an object is documented: the shortest public one."""
    is_short = module != "linkwise" and name in public_names("linkwise")
    return f"linkwise.{name}" if is_short else f"{module}.{name}"


def documented() -> dict[str, Any]:
    """Return every public object by the name under which it is documented."""
    names = {home(m, name) for m in MODULES for name in public_names(m)}
    return {name: _object(name) for name in sorted(names)}


def write_reference(app: Sphinx | None = None) -> None:
    """Write the index, the sections and a page for each public name; keep files that are right."""
    pages = all_pages()
    for old in set(FOLDER.rglob("*.rst")) - set(pages):
        old.unlink()
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def all_pages() -> dict[Path, str]:
    """Return the text of every page of the reference."""
    sections = [_methods(), *(_module(name) for name in MODULES if public_names(name))]
    body = "\n".join(section.in_index() for section in sections)
    contents = "".join(f"   {section.name}\n" for section in sections)
    index = f"{_title('API reference')}{INTRODUCTION}\n{body}\n{TOCTREE}{contents}"
    pages = {FOLDER / "index.rst": index}
    pages |= {FOLDER / f"{section.name}.rst": section.as_page() for section in sections}
    for name, value in documented().items():
        pages[FOLDER / "names" / f"{name}.rst"] = page(name, value)
    return pages


@dataclass(frozen=True)
class Section:
    """Names that belong together."""

    name: str
    title: str
    text: str
    pages: list[str]

    def as_page(self) -> str:
        """Return a page of its own, with the pages of its names below it."""
        entries = ((name.removeprefix("linkwise."), name) for name in self.pages)
        contents = "".join(f"   {short} <names/{name}>\n" for short, name in entries)
        return f"{_title(self.title)}{self.text}\n{TOCTREE}{contents}"

    def in_index(self) -> str:
        """Return its lines in the index of the reference."""
        return f"{self.title}\n{RULE}\n\n{self.text.replace(RULE, '~' * len(RULE))}\n"


RULE = "-" * 60
TOCTREE = ".. toctree::\n   :hidden:\n\n"
INTRODUCTION = """
Every public name, from its docstring. All methods are estimators of scikit-learn:
``fit(X, constraints=known)``, then ``labels_``. Start with :class:`linkwise.Auto` and
:class:`linkwise.Constraints`. How each method works, with its formulas, is on
:doc:`a page of its own </methods/index>`.
"""


def page(name: str, value: Any) -> str:
    """Return the page of one public name."""
    short = name.removeprefix("linkwise.")
    parts = [_title(short)]
    if inspect.isclass(value):
        parts.append(_class_page(name, value))
    elif callable(value) and hasattr(value, "__name__"):
        parts.append(f".. autofunction:: {name}\n")
    else:
        parts.append(_data_page(name, value))
    if callable(value):
        parts.append(f".. minigallery:: {name}\n   :add-heading: Examples\n   :heading-level: -\n")
    return "\n".join(parts)


def _class_page(name: str, value: type) -> str:
    text = f".. autoclass:: {name}\n"
    if members := _members(value):
        text += f"   :members: {', '.join(members)}\n   :member-order: bysource\n"
    key = METHODS.keys_by_class.get(value.__name__)
    if key is not None and METHODS[key] is value:
        text += (
            f"\nIdea, formulas, cost, when to use it: :doc:`the page of {key} </methods/{key}>`.\n"
        )
    return text


def _data_page(name: str, value: Any) -> str:
    keys = ", ".join(f"``{key}``" for key in value) if hasattr(value, "keys") else ""
    content = f"Its keys: {keys}." if keys else f"It is ``{value!r}``."
    return f".. py:data:: {name}\n\n   {DATA[name]} {content}\n"


DATA = {
    "linkwise.METHODS": "Every method: its class by its key, imported when it is asked for.",
    "linkwise.active.STRATEGIES": "Strategies by name: each chooses the pairs to ask about.",
    "linkwise.graph.DENSE_LIMIT": "Most samples for which a method forms all n x n values.",
}


def _members(value: type) -> list[str]:
    """Return the methods and properties of a class that are ours, not scikit-learn's."""
    names = [name for name in dir(value) if not name.startswith("_") and name != "solve"]
    return [name for name in names if _is_ours(value, name)]


def _is_ours(value: type, name: str) -> bool:
    attribute = inspect.getattr_static(value, name)
    if isinstance(attribute, property):
        attribute = attribute.fget
    elif isinstance(attribute, cached_property):
        attribute = attribute.func
    elif isinstance(attribute, classmethod | staticmethod):
        attribute = attribute.__func__
    is_code = inspect.isfunction(attribute) and bool(attribute.__doc__)
    return is_code and attribute.__module__.startswith("linkwise")


def _methods() -> Section:
    families: dict[str, list[str]] = {}
    for Method in METHODS.values():
        families.setdefault(Method.family, []).append(f"linkwise.{Method.__name__}")
    tables = [f"{name.capitalize()}\n{RULE}\n\n{_table(own)}" for name, own in families.items()]
    names = [name for family in families.values() for name in family]
    return Section("methods", "Methods", "By the idea behind them.\n\n" + "\n".join(tables), names)


def _module(module: str) -> Section:
    names = [home(module, name) for name in public_names(module)]
    if module == "linkwise":  # the methods have a section of their own
        others = set(names) - {f"linkwise.{name}" for name in METHODS.keys_by_class}
        names = sorted(others, key=lambda name: (CORE.index(name) if name in CORE else 99, name))
    text = f"{_summary(import_module(module))}\n\n{_table(names)}"
    own = [name for name in names if name.rpartition(".")[0] == module]
    return Section(module, MODULES[module], text, own)


def _table(names: Iterable[str]) -> str:
    rows = "".join(
        f"   * - {_link(name)}\n     - {_summary(_object(name), name)}\n" for name in names
    )
    return f".. list-table::\n   :widths: 30 70\n   :class: names\n\n{rows}"


def _link(name: str) -> str:
    return f":doc:`{name.removeprefix('linkwise.')} </reference/names/{name}>`"


def _summary(value: Any, name: str = "") -> str:
    """Return the first paragraph of a docstring in one line."""
    doc = DATA.get(name) or inspect.getdoc(value) or ""
    return " ".join(doc.partition("\n\n")[0].split())


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _object(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)
