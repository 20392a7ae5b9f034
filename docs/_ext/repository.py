"""Pages of the repository on the site.

A Markdown file outside `docs`, such as CONTRIBUTING.md, has a short stub in `docs/project`. The
site shows the file there, and every link to the file leads to that page.
"""

from __future__ import annotations

import re
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# The file in the repository -> the page of the site that stands for it.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "benchmarks/README.md": "project/measuring.md",
}
SHOWN = {page.removesuffix(".md"): file for file, page in PAGES.items() if page != "index.md"}
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[)#])")
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Change pages as they are read."""
    app.connect("source-read", read_page)
    app.connect("html-page-context", lead_back_to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the file in place of its stub, and turn links to such files into links to pages."""
    page = DOCS / f"{docname}.md"
    if not page.exists():
        return
    text, origin = source[0], page
    if docname in SHOWN:
        origin = ROOT / SHOWN[docname]
        app.env.note_dependency(str(origin))
        text = origin.read_text(encoding="utf-8")
        if docname == "project/changelog":
            text = text.replace("See `changelog.d/`.", gathered_fragments())
    source[0] = LINK.sub(lambda link: site_path(link[1], origin, page), text)


def lead_back_to_pages(app: Sphinx, pagename: str, *rest: Any) -> None:
    """Let pages of source code lead back to the page of a name, not to anchors it may not have."""
    _, context, _ = rest
    if pagename.startswith("_modules/") and "body" in context:
        back = r'(class="viewcode-back" href="[^"#]*)#[^"]*"'
        context["body"] = re.sub(back, r'\1"', context["body"])


def site_path(target: str, origin: Path, page: Path) -> str:
    """Return a link of the file `origin` as it must be on the `page` that shows it."""
    file = (origin.parent / target).resolve()
    name = relpath(file, ROOT)
    if name in PAGES:
        return relpath(DOCS / PAGES[name], page.parent)
    return target if origin == page else relpath(file, page.parent)


def gathered_fragments() -> str:
    """Return the changes since the last release, by kind."""
    parts = []
    for kind, title in KINDS.items():
        files = sorted((ROOT / "changelog.d").glob(f"*.{kind}.md"))
        entries = [entry for file in files for entry in _entries(file)]
        if entries:
            parts.append(f"### {title}\n\n" + "\n".join(entries))
    return "\n\n".join(parts)


def _entries(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8").strip()
    return [text if text.startswith("- ") else "- " + text.replace("\n", "\n  ")]
