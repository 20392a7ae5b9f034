"""Check what `make dist` built: the contents, and the wheel in a clean environment.

``python tools/check_dist.py dist``
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parents[1]
# Besides all modules: what a module reads when it runs.
NEEDED = (
    "py.typed",
    "report/templates/report.css",
    "report/templates/report.html.j2",
    *(
        f"app/static/{path.name}"
        for path in (SOURCE / "src" / "linkwise" / "app" / "static").iterdir()
    ),
)
SERVE = ["linkwise", "serve", "--help"]
UNWANTED = ("__pycache__", ".nbi", ".nbc", ".pyc", ".venv", "demo-output")


def check_wheel(path: Path) -> None:
    """Raise AssertionError unless the wheel holds the package, its licence and nothing else."""
    names = zipfile.ZipFile(path).namelist()
    modules = {p.relative_to(SOURCE / "src").as_posix() for p in SOURCE.glob("src/**/*.py")}
    missing = (modules | {f"linkwise/{name}" for name in NEEDED}) - set(names)
    assert not missing, f"{path} lacks {sorted(missing)}"
    assert any(name.endswith("licenses/LICENSE") for name in names), f"{path} lacks its licence"
    tops = {name.partition("/")[0].partition("-")[0] for name in names}
    assert tops == {"linkwise"}, f"{path} holds {sorted(tops)}"
    _check_clean(path, names)


def check_sdist(path: Path) -> None:
    """Raise AssertionError unless the source distribution can be built and tested."""
    with tarfile.open(path) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    wanted = {"pyproject.toml", "LICENSE", "README.md", "Makefile", "tests/conftest.py"}
    missing = wanted - set(names)
    assert not missing, f"{path} lacks {sorted(missing)}"
    _check_clean(path, names)


def _check_clean(path: Path, names: list[str]) -> None:
    extra = [name for name in names if any(part in name for part in UNWANTED)]
    assert not extra, f"{path} holds {extra[:5]}"


def run_installed(wheel: Path) -> None:
    """Install the wheel in a new environment, and run the demo and the program there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = next(p for p in Path(folder).glob("*/python*") if p.stem == "python")
        install = [python, "-m", "pip", "install", "--quiet", f"{wheel}[plot,report,cli,app]"]
        subprocess.run(install, check=True)
        commands = (["linkwise.demo"], ["linkwise", "--version"], ["linkwise", "methods"], SERVE)
        for command in commands:
            subprocess.run([python, "-m", *command], check=True, cwd=folder)
        assert list(Path(folder).glob("demo-output/*")), "the demo wrote nothing"


def main(folder: str = "dist") -> None:
    """Check everything in a folder."""
    (wheel,), (sdist,) = Path(folder).glob("*.whl"), Path(folder).glob("*.tar.gz")
    check_wheel(wheel)
    check_sdist(sdist)
    run_installed(wheel.resolve())
    print(f"{wheel.name} and {sdist.name} are complete, and the wheel runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
