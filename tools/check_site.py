"""Check a built site: its links, how much prose comes before a picture, and what is easy to find.

``python tools/check_site.py build/docs/VERSION``
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SKIPPED = ("http", "https", "mailto", "data", "javascript")
# A line has about 15 words and a screen of 900 pixels 30 lines: well below a screen and a half.
WORDS_BEFORE_A_PICTURE = 300
CLICKS = 3
# What a new reader looks for, and the page that answers. The front page must lead there.
TASKS = {
    "cluster a CSV file": "guide/command-line.html",
    "give labels": "guide/labels.html",
    "contradictions": "guide/contradictions.html",
    "large data": "guide/large-data.html",
    "add a method": "project/contributing.html",
}
PICTURES = {"img", "svg", "pre", "math", "figure"}
NOT_PROSE = {"table", "script", "style", "h1", "h2", "h3", "h4"}
VOID = {"img", "br", "hr", "input", "meta", "link", "source", "wbr", "col", "area", "embed"}


class Page(HTMLParser):
    """The targets that a page has, and the links that it makes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.article_links: list[str] = []
        self.words_before_a_picture = 0
        self._open: list[str] = []  # tags of the article that are open, the outermost first
        self._has_picture = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what matters of a tag."""
        found = {name: value for name, value in attrs if value}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        self.links.extend(found[name] for name in ("href", "src") if name in found)
        is_loaded = "src" in found or (tag == "link" and found.get("rel") == "stylesheet")
        if is_loaded:
            self.fetched.append(found.get("src") or found.get("href", ""))
        if self._open or tag == "article":
            self._enter(tag, found)

    def handle_endtag(self, tag: str) -> None:
        """Leave a part of the article, and what nobody closed inside it."""
        if tag in self._open:
            last = len(self._open) - 1 - self._open[::-1].index(tag)
            del self._open[last:]

    def handle_data(self, data: str) -> None:
        """Count the words of the article until a picture or code comes."""
        is_prose = self._open and not self._has_picture and NOT_PROSE.isdisjoint(self._open)
        self.words_before_a_picture += len(data.split()) if is_prose else 0

    def _enter(self, tag: str, found: dict[str, str]) -> None:
        is_signature = "sig" in found.get("class", "").split()  # of a function: code as well
        self._has_picture |= tag in PICTURES or is_signature
        if tag == "a" and "href" in found:
            self.article_links.append(found["href"])
        if tag not in VOID:
            self._open.append(tag)


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


def long_beginnings(site: Path) -> list[str]:
    """Return a line for each page on which much prose comes before the first picture or code."""
    counts = {path: Page(path).words_before_a_picture for path in html_files(site)}
    return [
        f"{path.relative_to(site)}: {words} words before the first picture or code"
        for path, words in counts.items()
        if words > WORDS_BEFORE_A_PICTURE
    ]


def far_from_the_front_page(site: Path, tasks: dict[str, str] = TASKS) -> list[str]:
    """Return a line for each task whose page takes too many clicks, by links in the text alone."""
    site = site.resolve()
    clicks = {site / "index.html": 0}
    waiting = [site / "index.html"]
    for path in waiting:  # grows: the nearest pages come first
        for target in _text_links(path) if clicks[path] < CLICKS else []:
            if target not in clicks and site in target.parents:
                clicks[target] = clicks[path] + 1
                waiting.append(target)
    return [f"{task}: {page}" for task, page in tasks.items() if site / page not in clicks]


def _text_links(path: Path) -> list[Path]:
    parts = [urlsplit(link) for link in Page(path).article_links]
    inside = [unquote(part.path) for part in parts if part.scheme not in SKIPPED]
    targets = [(path.parent / link).resolve() for link in inside if link.endswith(".html")]
    return [target for target in targets if target.exists()]


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
    broken += [f"late picture: {line}" for line in long_beginnings(site)]
    broken += [f"more than {CLICKS} clicks: {line}" for line in far_from_the_front_page(site)]
    print("\n".join(broken), end="\n" * bool(broken))
    print(f"{len(html_files(site))} pages, {len(broken)} mistakes")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
