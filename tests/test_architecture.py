"""The house as a test: who may import whom, and what an import costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise
from linkwise._jit import Kernel, njit
from tracing import TRACED, walk, walk_of_fit

SOURCE = Path(linkwise.__file__).parent
# A layer may import the ones on lines above its own, and itself.
LAYERS = [
    {"_types", "_threads"},
    {"_jit"},
    {
        *("_version", "_docs", "_files", "_hints", "_inputs", "_interrupts", "_optional"),
        *("_params", "_progress", "_quiet", "_kernels", "_rows", "_text", "_values"),
        "exceptions",
    },
    {"result", "constraints", "linalg"},
    {"graph", "partition", "metrics", "datasets"},
    {"search"},
    {"methods"},
    {"linkage"},
    {"auto"},
    {"registry"},
    {"plots"},
    {"evaluate", "active", "tl"},
    {"report"},
    {"distributed"},
    {"app"},
    {"demo"},
    {"cli"},
    {"__main__"},
]
MODULE_NAME = re.compile(r"linkwise(\.\w+)+")
OPTIONAL = [
    "matplotlib",
    "pandas",
    "faiss",
    "pyamg",
    "dask",
    "distributed",
    "jinja2",
    "starlette",
    "uvicorn",
    "click",
    "tqdm",
    "pyarrow",
    "anndata",
    "openpyxl",
]


def imported_names(tree):
    """Yield what a file imports: by statement, or by a string that names a module of linkwise."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and MODULE_NAME.fullmatch(str(node.value)):
            yield node.value  # import_module("linkwise.graph"), or a table of such names


def imported_layers(source):
    """Return the top-level modules of linkwise that a source text imports, anywhere in it."""
    for name in imported_names(ast.parse(source)):
        top, _, rest = name.partition(".")
        layer = rest.partition(".")[0]
        is_module = (SOURCE / layer).is_dir() or (SOURCE / f"{layer}.py").is_file()
        if top == "linkwise" and layer and is_module:
            yield layer


def level(layer):
    return next(number for number, layers in enumerate(LAYERS) if layer in layers)


FILES = sorted(set(SOURCE.rglob("*.py")) - {SOURCE / "__init__.py"})


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(SOURCE)) for p in FILES])
def test_imports_point_downwards(path):
    layer = path.relative_to(SOURCE).with_suffix("").parts[0]
    if layer == "demo":  # an application: it uses the library as a user does
        return
    for used in imported_layers(path.read_text(encoding="utf-8")):
        if used != layer:
            assert level(used) < level(layer), f"{layer} imports linkwise.{used}"


def test_imports_by_name_are_seen():
    source = 'from importlib import import_module\nimport_module("linkwise.methods.ncut")\n'
    assert list(imported_layers(source)) == ["methods"]


def calls_upwards(found):
    return sorted(call for call in found.calls if level(call[1]) > level(call[0]))


@pytest.mark.parametrize("name", TRACED)
def test_no_function_calls_a_higher_layer(name):
    """Not even through a callback: whatever runs below was written below."""
    assert calls_upwards(walk_of_fit(name)) == []


def test_a_reader_can_follow_the_default_method():
    """From X to labels through at most 250 functions, 30 files and 15 calls.

    Not counted are the compiler's: no data walk through them.
    """
    found = walk_of_fit("Auto")
    beside = {"_jit.py"}
    walked = [Path(file).relative_to(SOURCE).as_posix() for file, _ in found.functions]
    counted = [file for file in walked if file not in beside]
    assert len(counted) <= 250, len(counted)
    assert len(set(counted)) <= 30, sorted(set(counted))
    assert found.depth <= 15


def test_callbacks_upwards_are_seen():
    from linkwise.evaluate.measure import _Clock
    from linkwise.linalg.operators import Counted

    class Callback:
        shape = (2, 2)

        def __matmul__(self, other):
            _Clock().read()  # a function of `evaluate`, called from `linalg`
            return other

    found = walk(lambda: Counted(Callback()) @ np.ones(2))
    assert ("linalg", "evaluate", "_Clock.read") in calls_upwards(found)


def test_the_drawing_shows_all_layers():
    page = SOURCE.parents[1] / "CONTRIBUTING.md"
    if not page.exists():
        pytest.skip("linkwise is installed without its repository")
    text = page.read_text(encoding="utf-8").partition("a test says so:\n\n")[2].partition("\n\n")[0]
    known = set.union(*LAYERS)
    # Names come first on a line; remarks follow after four spaces or more.
    drawn = [set(re.split(r" {4,}", line.strip())[0].split()) for line in text.splitlines()]
    assert drawn == [layers for layers in LAYERS if not layers & {"demo", "__main__"}]
    assert known - set.union(*drawn) == {"demo", "__main__"}


def test_the_core_works_without_any_optional_library():
    script = f"""
import sys
class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, NotInstalled())
import linkwise, linkwise.plots
from linkwise.datasets import make_xor
X, y = make_xor(random_state=0)
known = linkwise.Constraints.sample(y, 5, random_state=0)
print(linkwise.SignedCSC(2, random_state=0).fit(X, constraints=known).labels_.size)
try:
    linkwise.plots.draw_side_by_side(X, {{"one": y}})
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("40")
    assert "pip install 'linkwise[plot]'" in done.stdout


@pytest.mark.parametrize(
    "name", ["Constraints", "Auto", "E2CP", "ConstrainedCut", "COSC", "GFHF", "CCL"]
)
def test_an_estimator_imports_neither_the_compiler_nor_other_methods(name):
    """numba takes as long to import as all of linkwise; it is for those who fit."""
    script = f"""
import sys
from linkwise import {name}
others = [m for m in sys.modules if m.startswith("linkwise.methods.") and "._" not in m]
print("numba" in sys.modules, len(others))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    numba, n_methods = done.stdout.split()
    assert numba == "False"
    assert int(n_methods) <= 3  # its own, and those that it ends in


def test_a_kernel_is_compiled_when_it_is_called():
    @njit(cache=False)
    def double(x):
        """Return twice a number."""
        return 2 * x

    late = Kernel(double.py_func, {"cache": False})
    assert (late.__name__, late.__doc__) == ("double", "Return twice a number.")
    assert late._dispatcher is None

    def fourfold(x):
        return late(late(x))

    assert njit(fourfold)(3) == 12  # a compiled function calls one that is not compiled yet
    assert (late(3), late.py_func(3)) == (6, 6)
    assert not hasattr(late, "__nothing__")


REMOTE = {"socket", "http", "urllib", "requests", "ftplib", "ssl"}
EXECUTING = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}


@pytest.mark.parametrize("path", FILES, ids=[str(p.relative_to(SOURCE)) for p in FILES])
def test_nothing_is_unpickled_and_only_datasets_are_downloaded(path):
    source = path.read_text(encoding="utf-8")
    used = {name.partition(".")[0] for name in imported_names(ast.parse(source))}
    assert not used & EXECUTING
    assert "allow_pickle=True" not in source
    listens = path == SOURCE / "app" / "listen.py"  # it waits for the browser, and calls nobody
    assert not used & REMOTE or path.is_relative_to(SOURCE / "datasets") or listens
