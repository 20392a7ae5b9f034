"""Public names in inline code lead to the reference, in Markdown and in docstrings."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

from reference import documented

if TYPE_CHECKING:
    from sphinx.application import Sphinx

NAME = re.compile(r"(?:linkwise\.)?([A-Za-z_.]\w*(?:\.\w+)*)(?:\(.*\))?", re.DOTALL)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the links."""
    app.add_transform(LinkInlineCode)
    app.connect("missing-reference", find_by_short_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


@cache
def full_names() -> dict[str, str]:
    """Return the documented name of every name by which a text may mention it."""
    found: dict[str, str] = {}
    for name in documented():
        parts = name.split(".")
        for start in range(1, len(parts)):
            found.setdefault(".".join(parts[start:]), name)
    return found


def class_names() -> dict[str, str]:
    """Return the documented name of every class by its own, for the types of parameters."""
    return {
        name: full for name, full in full_names().items() if "." not in name and name[0].isupper()
    }


def target_of(text: str) -> str | None:
    """Return the documented name that inline code mentions, if it is one.

    Lower-case words such as `cut` are methods' keys and parameters too: these must be whole names,
    ``metrics.cut``, or calls, ``write_report(...)``.
    """
    match = NAME.fullmatch(text)
    if match is None:
        return None
    name = match[1]
    is_plain = name.islower() and "." not in name and not text.endswith(")") and "_" not in name
    return None if is_plain else full_names().get(name)


class LinkInlineCode(SphinxTransform):
    """Wrap inline code that names something public into a reference to it."""

    default_priority = 600

    def apply(self, **_: Any) -> None:
        """Change the document."""
        for literal in list(self.document.findall(nodes.literal)):
            name = target_of(literal.astext())
            if name is None or _is_in_link(literal):
                continue
            link = pending_xref(
                "", refdomain="py", reftype="obj", reftarget=name, refexplicit=True, refwarn=True
            )
            literal.replace_self(link)
            link += literal


def _is_in_link(node: nodes.Node) -> bool:
    inside = (nodes.reference, pending_xref, nodes.title)
    while node.parent is not None:
        node = node.parent
        if isinstance(node, inside):
            return True
    return False


def find_by_short_name(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Resolve ``:class:`Affinity``` and the types of parameters wherever they are written."""
    if node.get("refdomain") != "py":
        return None
    target = node.get("reftarget", "").rpartition("linkwise.")[2].split(".")
    for end in range(len(target), 0, -1):
        name = full_names().get(".".join(target[:end])) or full_names().get(target[end - 1])
        if name is not None and not target[end - 1].islower():
            anchor = f"reference/names/{name}"
            return make_refnode(app.builder, node["refdoc"], anchor, name, content, name)
    return None
