"""The documentation is true: its code runs, its links lead somewhere, its tables are complete."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from linkwise import METHODS, NCut
from linkwise.metrics import adjusted_rand

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
ids = [str(page.relative_to(ROOT)) for page in PAGES]


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if python_blocks(page)], ids=lambda p: p.name
)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
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


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_lists_every_method():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for key, Method in METHODS.items():
        assert f"[`{key}`](docs/methods/{key}.md) | `{Method.__name__}`" in readme


def test_the_guide_names_every_file_format():
    pytest.importorskip("click")
    from linkwise.cli.formats import FORMATS

    guide = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    assert [suffix for suffix in FORMATS if f"`{suffix}`" not in guide] == []


@pytest.mark.parametrize("key", METHODS)
def test_a_method_page_answers_the_same_questions(key):
    page = (ROOT / "docs" / "methods" / f"{key}.md").read_text(encoding="utf-8")
    for question in ("**Problem.**", "**When to use.**", "**Cost.**", "**Reference.**"):
        assert question in page, question


def test_the_example_of_the_readme_respects_its_constraints():
    namespace = {}
    exec(python_blocks(ROOT / "README.md")[0], namespace)
    assert namespace["known"].satisfied(namespace["model"].labels_) == 1.0
    before = NCut(3, random_state=0).fit(namespace["X"])
    found = [adjusted_rand(namespace["y"], m.labels_) for m in (before, namespace["model"])]
    assert [round(score, 2) for score in found] == [0.74, 0.92]
