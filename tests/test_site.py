"""The documentation site: complete, and checked by a tool that finds what is broken.

The site itself is built by ``make docs``, which runs every script of the gallery.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

import linkwise
from linkwise import METHODS

ROOT = Path(__file__).resolve().parents[1]
# Modules without a section in the reference: how linkwise works inside, or programs.
INTERNAL = {
    *("app", "auto", "cli", "demo", "linalg", "methods", "partition", "registry", "result"),
    "search",
}


def load(path):
    """Import a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


check_site = load(ROOT / "tools" / "check_site.py")
reference = load(ROOT / "docs" / "_ext" / "reference.py")


def test_every_module_is_in_the_reference_or_internal():
    folder = Path(linkwise.__file__).parent
    modules = {path.stem for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()}
    public = {name for name in modules if not name.startswith("_")} - INTERNAL
    assert {f"linkwise.{name}" for name in public} - set(reference.MODULES) == set()


@pytest.mark.parametrize("module", reference.MODULES)
def test_every_public_name_has_a_page(module):
    if importlib.util.find_spec(module) is None:
        assert module == "linkwise.distributed"
        return
    namespace = import_module(module)
    pages = {path.stem: text for path, text in reference.all_pages().items()}
    for name in reference.public_names(module):
        page = pages[reference.home(module, name)]
        value = getattr(namespace, name)
        kind = "class" if inspect.isclass(value) else "function"
        directive = f"auto{kind}" if inspect.isclass(value) or inspect.isfunction(value) else "data"
        assert f"{directive}:: {reference.home(module, name)}\n" in page


def test_every_method_is_in_the_index_and_leads_to_its_page():
    pages = {path.name: text for path, text in reference.all_pages().items()}
    for key, Method in METHODS.items():
        assert f"</reference/names/linkwise.{Method.__name__}>" in pages["index.rst"]
        assert f"</methods/{key}>" in pages[f"linkwise.{Method.__name__}.rst"]


PLAIN_FUNCTIONS = [
    name for name, value in reference.documented().items() if inspect.isfunction(value)
]
ESTIMATORS = [f"linkwise.{Method.__name__}" for Method in METHODS.values()]


@pytest.mark.parametrize("name", [*ESTIMATORS, *PLAIN_FUNCTIONS])
def test_every_parameter_has_a_type_a_default_and_a_description(name):
    value = reference.documented()[name]
    parameters = inspect.signature(value).parameters
    entries = described_parameters(inspect.getdoc(value)) if parameters else {}
    for parameter in parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            kind, text = entries[parameter.name]
            assert kind, parameter
            assert text, parameter
            has_default = parameter.default is not parameter.empty
            assert ("default=" in kind or "optional" in kind) == has_default, parameter


ADVICE = re.compile(r"\b(Set|Give|Take|Use|Raise|Lower|Change|Leave|Choose)\b")
CONFIGURED = [*ESTIMATORS, "linkwise.Affinity", "linkwise.ApproximateNeighbors"]


@pytest.mark.parametrize("name", [*CONFIGURED, "linkwise.active.Session"])
def test_every_optional_parameter_says_when_to_change_it(name):
    value = reference.documented()[name]
    described = described_parameters(inspect.getdoc(value))
    optional = [p for p in inspect.signature(value).parameters.values() if p.default is not p.empty]
    silent = [p.name for p in optional if not ADVICE.search(described[p.name][1])]
    assert silent == []


def described_parameters(doc):
    """Return type and text of each parameter that a docstring describes."""
    section = re.split(r"Parameters\n-+\n", doc)[1]
    section = re.split(r"\n\n\w[\w ]*\n-{3,}\n", section)[0]
    found = {}
    for entry in re.split(r"\n(?=\S)", section):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        found |= {name.strip("* "): (kind, text.strip()) for name in names.split(",")}
    return found


def test_every_script_of_the_gallery_has_its_place():
    gallery = load(ROOT / "docs" / "_ext" / "gallery_scripts.py")
    scripts = {path.name for path in (ROOT / "examples").rglob("*.py")}
    folders = {path.parent.name for path in (ROOT / "examples").rglob("*.py")}
    assert scripts == set(gallery.READ_FIRST)
    assert folders == set(gallery.SECTIONS)


def write_page(folder, name, body):
    (folder / name).write_text(f"<html><body>{body}</body></html>", encoding="utf-8")


def test_broken_links_are_found(tmp_path):
    write_page(tmp_path, "index.html", '<a href="b.html#here">1</a> <a href="#top">2</a>')
    write_page(tmp_path, "b.html", '<p id="here"><img src="no.png"><a href="c.html">3</a>')
    broken = check_site.broken_links(tmp_path)
    assert broken == ["b.html: c.html", "b.html: no.png", "index.html: #top"]
    assert check_site.main(str(tmp_path)) == 1


def front_page(*links):
    """Return the text of a front page that leads to the pages that a new reader looks for."""
    anchors = "".join(f'<a href="{link}">x</a>' for link in links)
    return f"<article><p>{anchors}</p><img src='data:,'></article>"


def write_task_pages(folder):
    for page in check_site.TASKS.values():
        (folder / page).parent.mkdir(exist_ok=True)
        write_page(folder, page, "<article><pre>code</pre></article>")


def test_a_site_without_mistakes_passes(tmp_path):
    write_page(
        tmp_path, "index.html", '<a href="b.html#here">1</a> <a href="https://x.org/y">2</a>'
    )
    write_page(tmp_path, "b.html", '<p id="here"><a href="index.html">3</a>')
    write_task_pages(tmp_path)
    write_page(tmp_path, "index.html", front_page(*check_site.TASKS.values()))
    assert check_site.main(str(tmp_path)) == 0


def test_prose_before_the_first_picture_is_counted(tmp_path):
    long = "<h1>Title</h1><p>" + "word " * 301 + "<br>"
    table = "<table><tr><td>" + "cell " * 400 + "</td></tr></table>"
    write_page(tmp_path, "long.html", f"<article>{long}<pre>code</pre></article>")
    write_page(tmp_path, "none.html", f"<article>{table}{long}</article>")
    write_page(tmp_path, "code.html", f"<article><pre>code</pre>{long}</article>")
    write_page(tmp_path, "picture.html", f"<article><p><img src='data:,'>{long}</article>")
    write_page(tmp_path, "signature.html", f"<article><dt class='sig x'>f(a)</dt>{long}</article>")
    write_page(tmp_path, "navigation.html", f"<nav>{long}</nav><article>short</article>")
    late = [line.split(":")[0] for line in check_site.long_beginnings(tmp_path)]
    assert late == ["long.html", "none.html"]


def test_pages_that_take_too_many_clicks_are_found(tmp_path):
    write_task_pages(tmp_path)
    write_page(tmp_path, "index.html", front_page("1.html"))
    write_page(tmp_path, "1.html", front_page("2.html"))
    write_page(tmp_path, "2.html", front_page("guide/labels.html", "3.html"))
    write_page(tmp_path, "3.html", front_page("guide/command-line.html"))
    far = check_site.far_from_the_front_page(tmp_path)
    assert "cluster a CSV file: guide/command-line.html" in far
    assert "give labels: guide/labels.html" not in far
    assert len(far) == len(check_site.TASKS) - 1


def test_what_a_page_would_load_from_the_network_is_found(tmp_path):
    write_page(tmp_path, "index.html", '<script src="https://x.org/y.js"></script>')
    assert check_site.loaded_from_elsewhere(tmp_path) == ["index.html: https://x.org/y.js"]
