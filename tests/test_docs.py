"""The documentation is true: its code runs, its links lead somewhere, its tables are complete."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from linkwise import METHODS, Auto
from linkwise.metrics import adjusted_rand

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
READ = [
    *ROOT.glob("docs/guide/*.md"),
    *ROOT.glob("docs/methods/*.md"),
    *(ROOT / "docs" / f"{name}.md" for name in ("glossary", "benchmarks")),
]
OPTIONAL = ("anndata", "dask", "pandas", "pyamg", "scanpy")  # extras, which may be missing
WORDS_BEFORE_A_PICTURE = 250  # well below a screen and a half
WORDS_OF_A_METHOD = 1_000
ids = [str(page.relative_to(ROOT)) for page in PAGES]


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_blocks(page)], ids=lambda p: p.name
)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    for library in OPTIONAL:
        if f"import {library}" in "\n".join(python_blocks(page)):
            pytest.importorskip(library, reason=f"the page needs {library}")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for block in python_blocks(page):
        if ">>>" not in block:
            exec(compile(block, str(page), "exec"), namespace)
    failed, tried = doctest.testfile(
        str(page),
        module_relative=False,
        optionflags=doctest.NORMALIZE_WHITESPACE,
        encoding="utf-8",
    )
    assert failed == 0, f"{failed} of {tried} examples differ; see the captured output"


def anchors(page):
    """Return what links may name after `#`: the headings, as repositories spell them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text):
        if "://" not in target and "`" not in target:
            place = page.parent / target if target else page
            assert place.exists(), f"{page.name} links to {target}"
            if anchor and place.suffix == ".md":
                assert anchor in anchors(place), f"{page.name} links to {target}#{anchor}"


def test_the_page_of_methods_lists_every_method():
    index = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    for key, Method in METHODS.items():
        assert f"[`{key}`]({key}.md) | `{Method.__name__}`" in index
        assert f"\n{Method.__name__} <{key}>\n" in index  # the navigation of the site


def test_every_method_has_a_scene_and_every_picture_a_place():
    script = (ROOT / "tools" / "method_pictures.py").read_text(encoding="utf-8")
    assert set(re.findall(r'^    "(\w+)": Scene\(', script, re.M)) == set(METHODS)
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    images = ROOT.glob("docs/images/**/*.png")
    assert [image.name for image in images if f"/{image.name})" not in text] == []


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 80


@pytest.mark.parametrize("page", READ, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_picture_or_code_comes_before_a_screen_and_a_half_of_prose(page):
    prose = re.split(r"^```|!\[|^\|", page.read_text(encoding="utf-8"), maxsplit=1, flags=re.M)[0]
    assert len(prose.split()) <= WORDS_BEFORE_A_PICTURE


@pytest.mark.parametrize("page", [*READ, ROOT / "README.md"], ids=lambda p: p.stem)
def test_every_page_leads_to_the_glossary(page):
    text = page.read_text(encoding="utf-8")
    assert "glossary.md" in text or page.name == "glossary.md"


def test_the_guide_names_every_file_format():
    pytest.importorskip("click")
    from linkwise.cli.formats import FORMATS

    guide = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    assert [suffix for suffix in FORMATS if f"`{suffix}`" not in guide] == []


@pytest.mark.parametrize("key", METHODS)
def test_a_method_page_answers_the_same_questions(key):
    page = (ROOT / "docs" / "methods" / f"{key}.md").read_text(encoding="utf-8")
    for question in (
        *("**Problem.**", "**When to use.**", "**When not.**", "**Cost.**", "**Reference.**"),
        *(f"../images/methods/{key}.png", "```math"),
    ):
        assert question in page, question


@pytest.mark.parametrize("key", METHODS)
def test_a_method_page_is_short(key):
    page = (ROOT / "docs" / "methods" / f"{key}.md").read_text(encoding="utf-8")
    assert len(page.split()) <= WORDS_OF_A_METHOD, "put how it works on a page `-inside`"


def test_the_example_of_the_readme_does_what_its_picture_shows():
    namespace = {}
    exec("\n".join(python_blocks(ROOT / "README.md")), namespace)
    X, rows = namespace["X"], namespace["y"] // 2
    before = Auto(2, random_state=0).fit(X)
    assert adjusted_rand(namespace["y"] % 2, before.labels_) == 1.0  # left and right
    assert adjusted_rand(rows, namespace["model"].labels_) > 0.95  # top and bottom
