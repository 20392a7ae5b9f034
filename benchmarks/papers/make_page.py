"""Write docs/papers.md and its pictures from what the papers' experiments have left in ``out``.

Run: python benchmarks/papers/make_page.py [--out benchmarks/papers/out] [--docs docs]
"""

from __future__ import annotations

import argparse
import csv
import importlib
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import HERE, OUT
from run_all import experiments

DOCS = HERE.parents[1] / "docs"
WIDEST = 1200  # pixels
LARGEST = 150_000  # bytes of a picture
INTRODUCTION = """\
# The papers' experiments

The figures and tables of five papers, run again with this library. Every verdict is computed from
the numbers by a function that is part of the experiment: *holds* if the claim is true in every
place (mostly a data set) where it was tried, *partly* if in at least half of them, otherwise *does
not hold*. Places where it fails are marked "(no)". The words of a claim are ours. Methods go by
their keys; the pictures use the papers' names. Bands are one standard error.

`make papers` runs everything at a reduced size (stated with each table), `make papers-full` at the
papers' own. This page is written by `python benchmarks/papers/make_page.py`.
"""


def read_verdicts(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def cell(text):
    """Return a text that does not break a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def explained(module):
    """Return the docstring of an experiment without its title and the line how to run it."""
    paragraphs = (module.__doc__ or "").strip().split("\n\n")[1:]
    kept = "\n\n".join(p for p in paragraphs if not p.startswith("Run: "))
    return kept.replace("``", "`")


def copy_pictures(name, out, folder):
    """Copy the pictures of an experiment, with 256 colours and not too large; return the names."""
    from PIL import Image

    copied = []
    for path in [*out.glob(f"{name}.png"), *sorted(out.glob(f"{name}_*.png"))]:
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / path.name
        with Image.open(path) as image:
            shown = image.convert("RGB")
        width = min(WIDEST, shown.width)
        while True:
            height = round(shown.height * width / shown.width)
            small = shown if width == shown.width else shown.resize((width, height), Image.LANCZOS)
            small.quantize(256).save(target, optimize=True)
            if target.stat().st_size < LARGEST or width < 400:
                break
            width = int(0.85 * width)
        copied.append(path.name)
    return copied


def section(module, verdicts, pictures):
    """Return the part of the page about one experiment."""
    lines = [f"### {module.TITLE}", ""]
    lines += [f"*Run: {verdicts[0]['size']}.* `benchmarks/papers/{module.NAME}.py`", ""]
    lines += [f"![{module.TITLE}](images/papers/{picture})\n" for picture in pictures]
    lines += ["| claim | verdict | figures |", "|---|---|---|"]
    for v in verdicts:
        verdict = f"{v['verdict']} ({v['holds_on']} of {v['of']})"
        lines.append(f"| {cell(v['claim'])} | {verdict} | {cell(v['numbers'])} |")
    notes: dict[str, list[str]] = {}
    for v in verdicts:
        if v["note"]:
            notes.setdefault(cell(v["note"]), []).append(cell(v["claim"]))
    if notes:
        lines += ["", "Where claims do not hold everywhere, the reasons that were looked for:", ""]
        lines += [f"* *{'; '.join(claims)}.* {note}" for note, claims in notes.items()]
    return "\n".join([*lines, "", "How it was run:", "", explained(module), ""])


def overview(found):
    """Return the table of all experiments with the numbers of verdicts."""
    kinds = ("holds", "partly", "does not hold")
    lines = ["| experiment | size | " + " | ".join(kinds) + " |", "|---|---|---|---|---|"]
    for module, verdicts in found:
        counts = Counter(v["verdict"] for v in verdicts)
        size = verdicts[0]["size"].partition(":")[0]
        numbers = " | ".join(str(counts[kind]) for kind in kinds)
        lines.append(f"| {module.PAPER.partition(':')[0]}, {module.TITLE} | {size} | {numbers} |")
    return "\n".join(lines) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="where the experiments wrote")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of papers.md")
    given = parser.parse_args(argv)
    found, missing = [], []
    for path in experiments():
        module = importlib.import_module(path.stem)
        verdicts_path = given.out / f"{module.NAME}.verdicts.csv"
        if verdicts_path.is_file():
            found.append((module, read_verdicts(verdicts_path)))
        else:
            missing.append(module.NAME)
    page = [INTRODUCTION, overview(found)]
    paper = None
    for module, verdicts in found:
        if paper != module.PAPER:
            paper = module.PAPER
            page.append(f"## {paper}\n")
        pictures = copy_pictures(module.NAME, given.out, given.docs / "images" / "papers")
        page.append(section(module, verdicts, pictures))
    if missing:
        page.append("Not run yet: " + ", ".join(f"`{name}`" for name in missing) + ".\n")
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(page)).rstrip() + "\n"
    (given.docs / "papers.md").write_text(text, encoding="utf-8")
    print(f"{given.docs / 'papers.md'}: {len(found)} experiments, {len(missing)} not run yet")


if __name__ == "__main__":
    main()
