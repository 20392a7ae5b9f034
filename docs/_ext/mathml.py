"""Formulas as MathML, which browsers draw by themselves: no script, no network."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

from docutils.nodes import SkipNode
from docutils.utils.math import MathError, latex2mathml
from sphinx.util.logging import getLogger

if TYPE_CHECKING:
    from sphinx.application import Sphinx

LOGGER = getLogger(__name__)
SYNONYMS = {"dots": "ldots", "operatorname": "mathrm"}  # what docutils knows by another name


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def visit_inline(translator: Any, node: Any) -> None:
    """Write a formula within a sentence."""
    translator.body.append(mathml(node, as_block=False))
    raise SkipNode


def visit_block(translator: Any, node: Any) -> None:
    """Write a formula on a line of its own, with its target if it has one."""
    anchor = f' id="{node["ids"][0]}"' if node["ids"] else ""
    translator.body.append(f'<div class="formula"{anchor}>{mathml(node, as_block=True)}</div>')
    raise SkipNode


def mathml(node: Any, *, as_block: bool) -> str:
    """Return a formula as MathML; what cannot be drawn is a warning, and stays as it was typed."""
    source = re.sub(r"\\[Bb]igg?[lr]?(?![a-zA-Z])", "", node.astext())  # brackets stretch anyway
    for command, known in SYNONYMS.items():
        source = re.sub(rf"\\{command}(?![a-zA-Z])", rf"\\{known}", source)
    try:
        return latex2mathml.tex2mathml(source, as_block=as_block)
    except MathError as error:
        LOGGER.warning("%s in the formula %s", error, source, location=node)
        return f"<code>{escape(source)}</code>"
