"""The gallery: how its pictures look, the order of its scripts, and pages that these write."""

from __future__ import annotations

from pathlib import Path
from shutil import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STYLE = Path(__file__).parents[1] / "_static" / "gallery.mplstyle"
SECTIONS = ["first_steps", "constraints", "data", "people", "methods"]
# In a section, what to read first; scripts that are not here follow by name.
READ_FIRST = [
    *("three_meanings.py", "moons_two_pairs.py", "xor.py", "iris_wrong_pairs.py", "k_unknown.py"),
    *("contradictions.py", "hard_or_soft.py"),
    *("graph.py", "anndata_cells.py", "duplicates.py", "large_data.py"),
    *("good_questions.py", "digits_map.py", "any_function_answers.py", "page.py", "report.py"),
    *("side_by_side.py", "learning_curves.py", "own_method.py"),
]


def setup(app: Sphinx) -> dict[str, bool]:
    """Bring the pages that scripts write, such as a report, to the site."""
    app.connect("build-finished", copy_written_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def copy_written_pages(app: Sphinx, error: Exception | None) -> None:
    """Copy every HTML file beside a script to the folder of the script's page."""
    for page in EXAMPLES.rglob("*.html"):
        folder = Path(app.outdir) / "gallery" / page.parent.name
        if error is None and folder.is_dir():
            copy(page, folder)


def use(_: Any, __: str) -> None:
    """Draw in the common style; sphinx-gallery calls this before every script."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 (only if the gallery is run)

    plt.style.use(STYLE)


def section_order(path: str) -> int:
    """Return the place of a section."""
    return SECTIONS.index(Path(path).name)


class ReadingOrder:
    """Sorts the scripts of a section."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Return the place of a script."""
        is_listed = name in READ_FIRST
        return (READ_FIRST.index(name) if is_listed else len(READ_FIRST)), name
