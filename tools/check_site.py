"""Check a built site: links between its pages, pictures, and that the reference is complete.

``python tools/check_site.py build/docs/VERSION``
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SKIPPED = ("http", "https", "mailto", "data", "javascript")


class Page(HTMLParser):
    """The targets that a page has, and the links that it makes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what matters of a tag."""
        found = {name: value for name, value in attrs if value}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        self.links.extend(found[name] for name in ("href", "src") if name in found)
        is_loaded = "src" in found or (tag == "link" and found.get("rel") == "stylesheet")
        if is_loaded:
            self.fetched.append(found.get("src") or found.get("href", ""))


def html_files(site: Path) -> list[Path]:
    """Return the pages of a site, without the templates that a theme leaves in `_static`."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def broken_links(site: Path) -> list[str]:
    """Return a line for each link or picture inside the site that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in html_files(site)}
    lines = []
    for path, page in pages.items():
        broken = sorted({link for link in page.links if _is_broken(path, link, pages)})
        lines += [f"{path.relative_to(site.resolve())}: {link}" for link in broken]
    return lines


def loaded_from_elsewhere(site: Path) -> list[str]:
    """Return a line for each script, style or picture that a page would load from the network."""
    return [
        f"{path.relative_to(site)}: {link}"
        for path in html_files(site)
        for link in Page(path).fetched
        if urlsplit(link).scheme in {"http", "https"} or link.startswith("//")
    ]


def _is_broken(page: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme in SKIPPED or link.startswith("//"):
        return False
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return True
    anchor = unquote(parts.fragment)
    return bool(anchor) and target in pages and anchor not in pages[target].anchors


def main(folder: str) -> int:
    """Print what is wrong, and how many pages were looked at."""
    site = Path(folder)
    broken = [f"broken link: {line}" for line in broken_links(site)]
    broken += [f"loaded from the network: {line}" for line in loaded_from_elsewhere(site)]
    print("\n".join(broken), end="\n" * bool(broken))
    print(f"{len(html_files(site))} pages, {len(broken)} broken links")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
