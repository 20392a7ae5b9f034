"""Write docs/papers.md from the tables in ``results``, and its pictures from ``out``.

Run: python benchmarks/papers/make_page.py [--results benchmarks/papers/results] [--docs docs]

Every verdict and every figure is computed from the tables; pictures that are not in ``out`` stay as
they are. `run_all.py --page` first copies the tables of a run to ``results``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from common import HERE, OUT, RESULTS, Means, judged, read_rows
from run_all import ONLY_TIMES, experiments

DOCS = HERE.parents[1] / "docs"
WIDEST = 1200  # pixels
LARGEST = 150_000  # bytes of a picture
KINDS = ("holds", "partly", "does not hold")
INTRODUCTION = """\
# The papers' experiments

We ran the experiments of five papers again, with this library. Which of their claims hold?

![A mixture: truth, without and with 80 constraints.](images/papers/cosc_fig2.png)

*One of the experiments: Figure 2 of Rangapuram & Hein 2012. With 80 random constraints, the four
classes are found.*

Each claim is judged twice:

* **By the letter.** All methods are those of the papers, equation by equation. This is the
  verdict on the paper.
* **By our default.** The method of the paper is replaced by ours of the same name, with its
  default settings. The other methods stay. *The same* means that this changes nothing.

A claim is tried in several places, mostly data sets. It *holds* if it is true in all of them, and
*partly* if it is true in at least half. Otherwise it *does not hold*. Places where it fails are
marked "(no)". Each claim comes with the rule by which it is judged. A method is the best if none is
above it, so a tie counts. The words of a claim are ours. Claims marked (ours) are not in the
papers.

All figures come from the tables in `benchmarks/papers/results`. These are our own measurements, and
a test computes the verdicts again from them. `make papers` repeats the measurements at a reduced
size, which is stated with each table. `make papers-full` has the size of the papers. Seeds are
fixed, and every fit runs on one thread. So the same machine gives the same digits. Times and memory
differ, and are in [a part of their own](#times-and-memory). Methods are called by their keys. The
pictures use the names of the papers, and bands are one standard error.
"""
TIMES = """\
## Times and memory

These figures depend on the machine and on what else it does: one core of a shared machine with two.
CPU seconds are those of one thread.
"""


# Plain sentences about each paper: the only words on the page that are not next to their figures.
SUMMARIES = {
    "Wacquet et al. 2013": """\
The paper proposes spectral clustering with a signed Laplacian (cSC) and claims that it is more
accurate than spectral learning (SL), FCSC and two linear projections on six UCI sets and, with
few constraints, on two sets of faces.

By the letter it is the best on three of the six sets. It fails on both sets of two classes,
where the paper takes the sign of the second eigenvector: with cannot-links the first one is the
partition. Our rounding of both vectors repairs that, and leaves ecoli. FCSC as in equation 30,
without orthogonality, is much better on two classes than with it, and still below SL. On faces
cSC is not the best, by the letter or by default. That constraints help cSC and SL, and that both
are above the linear projections, holds but for the sets of two classes.

Differences from the paper: the percentage of constraints and the scaling of features had to be
guessed (below).
""",
    "Xu et al. 2005": """\
The paper replaces the additive chain of Kamvar, Klein & Manning (KKM) by a random walk (CSC),
proposes a heuristic for sigma, and claims that CSC is above KKM and complete-link clustering
with constraints (CCL).

On the XOR data everything that it says of its own method holds, by both readings of sigma; what
it says against the other two does not, except for outliers. On soybean and iris CSC is above
KKM. It is above CCL on soybean by the letter, by little, and on iris not at all: there the
heuristic finds a sigma by which all samples are near. The second reading of sigma gives the same
verdicts, with a larger margin on soybean.

Differences from the paper: its XOR data, its amounts of constraints and its soybean set are not
known.
""",
    "Wang et al.": """\
The paper proposes to propagate labels first (GFHF) and to cluster under the constraints that
follow (CSC+GFHF), and claims better and more stable results than label propagation and
constrained spectral clustering alone.

On a graph that was chosen because it comes nearest to the paper's figures, this holds on five of
six sets, and the gain in stability on all that the paper names. On hepatitis CSC+GFHF is below
the others. That CSC and CSC+GFHF converge as labels are added holds on half of the sets. CSC is
close to LLGC, and not to GFHF. Our default of sigma suits this graph less than the 1 that was
chosen for it.

Differences from the paper: graph, sigma and threshold are not given there, and were chosen after
looking at results, so the verdicts are kind to the paper (below).
""",
    "Fu et al. 2011": """\
The paper propagates pairwise constraints over the graph (SRCP) and claims the best results on
four UCI sets and two sets of images, with a steady gain from more constraints.

By the letter of equation 9 this could not be had: propagated constraints are faint, and affinity
propagation (AP), which enforces them, is above SRCP nearly everywhere. Our default, which brings
them back to full strength, is mostly better than the letter, and is the best on Zoo alone. What
the paper says against the others is true of SL and SSKK, whose curves do not rise on every set.
It is not true of AP, which rises on all four: constraints do not make it worse on Ionosphere,
where it ends far above its start.

Differences from the paper: other features for the images, a scaling of the UCI features that had
to be guessed, amounts of our own.
""",
    "Rangapuram & Hein 2012": """\
The paper minimises a tight relaxation of the constrained normalised cut (COSC) and claims that
all constraints are satisfied, with better cuts and lower errors than four other methods.

For two classes all constraints are satisfied, by the letter and by default. The cuts are below
those of SCLC, by the letter in all places but one, by default in all. For more classes the
recursion of the paper violates some; our default repairs that, for any number of clusters, on
630,000 images too. That the error is the lowest is true for two classes on average over the
amounts, not at each of them, and not for ten classes on small samples: a low cut is not always a
low error. The bias of SCLC towards equal volumes, which the paper asserts, shows clearly where
the classes are unbalanced in volume, and comes from cannot-links.

Differences from the paper: its amounts of constraints are not in our copy of the text; the graph
follows the paper that it cites.
""",
}


def cell(text):
    """Return a text that does not break a table."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def explained(module):
    """Return the docstring of an experiment without its title and the line how to run it."""
    paragraphs = (module.__doc__ or "").strip().split("\n\n")[1:]
    kept = "\n\n".join(p for p in paragraphs if not p.startswith("Run: "))
    return kept.replace("``", "`")


def copy_pictures(name, out, folder):
    """Copy the pictures of an experiment, if there are any, with 256 colours and not too large."""
    from PIL import Image

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


def shown_pictures(name, folder):
    """Return the names of the pictures of an experiment that the page has."""
    return [p.name for p in [*folder.glob(f"{name}.png"), *sorted(folder.glob(f"{name}_*.png"))]]


class Experiment:
    """An experiment with its tables: the module, what was run, and the verdicts."""

    def __init__(self, module, results):
        self.module, self.results = module, results
        self.run = json.loads((results / f"{module.NAME}.run.json").read_text(encoding="utf-8"))
        self.verdicts = judged(module.CLAIMS, read_rows(results / f"{module.NAME}.csv"))
        self.only_times = module.NAME in ONLY_TIMES

    @property
    def costs(self):
        """Return the rows of times and memory."""
        path = self.results / f"{self.module.NAME}.costs.csv"
        return read_rows(path) if path.is_file() else []


def found_in(results):
    """Return the experiments that have a table, in the order of the page, and missing names."""
    names = [path.stem for path in experiments()]
    there = [name for name in names if (results / f"{name}.csv").is_file()]
    found = [Experiment(importlib.import_module(name), results) for name in there]
    return found, [name for name in names if name not in there]


def in_column(verdict):
    """Return what the column of our default says."""
    if verdict.is_same:
        return "the same"
    return str(verdict.default) if verdict.default.of else "-"


def claims_table(verdicts):
    lines = ["| | claim | by the letter | by our default |", "|---|---|---|---|"]
    for number, v in enumerate(verdicts, start=1):
        letter = str(v.letter) if v.letter.of else "not run"
        lines.append(f"| {number} | {cell(v.claim.text)} | {letter} | {in_column(v)} |")
    return lines


def figures_list(verdicts):
    """Return rule and figures of each claim."""
    lines = []
    for number, v in enumerate(verdicts, start=1):
        text = f"{number}. "
        text += f"*{cell(v.claim.rule)}* " if v.claim.rule else ""
        text += f"By the letter: {cell(v.letter.numbers)}." if v.letter.of else ""
        if not v.is_same and v.default.of:
            text += f" By our default: {cell(v.default.numbers)}."
        lines.append(text)
    return lines


def reasons(verdicts):
    """Return the notes of claims that do not hold, each once, with the numbers of its claims."""
    notes = {}
    for number, v in enumerate(verdicts, start=1):
        if v.note:
            notes.setdefault(cell(v.note), []).append(str(number))
    if not notes:
        return []
    listed = [f"* {', '.join(numbers)}: {note}" for note, numbers in notes.items()]
    return ["Reasons that were looked for, by the number of the claim:", "", *listed, ""]


def setting(method):
    """Return how a method was called; of a function, its first line."""
    if hasattr(method, "get_params"):
        return f"`{cell(repr(method))}`"
    return cell((method.__doc__ or method.__name__).strip().splitlines()[0])


def settings_table(module):
    lines = ["| method | as it was run |", "|---|---|"]
    return lines + [f"| `{name}` | {setting(method)} |" for name, method in module.methods()]


def section(experiment, folder):
    """Return the part of the page about one experiment."""
    module, verdicts = experiment.module, experiment.verdicts
    name = module.NAME
    lines = [f"### {module.TITLE}", ""]
    lines += [f"*Run: {experiment.run['size']}.* Program: `benchmarks/papers/{name}.py`", ""]
    lines += [f"![{module.TITLE}](images/papers/{p})\n" for p in shown_pictures(name, folder)]
    lines += [*claims_table(verdicts), "", "Rules and figures:", "", *figures_list(verdicts), ""]
    lines += [*reasons(verdicts), "How it was run:", "", explained(module), ""]
    return "\n".join([*lines, *settings_table(module), ""])


def overview(found):
    """Return the table of all experiments with the numbers of verdicts."""
    heads = [f"{kind}, {by}" for by in ("letter", "default") for kind in KINDS]
    lines = ["| experiment | " + " | ".join(heads) + " |", "|" + "---|" * (1 + len(heads))]
    for e in found:
        letter = Counter(v.letter.verdict for v in e.verdicts)
        default = Counter(v.default.verdict for v in e.verdicts)
        numbers = [str(counts[kind]) for counts in (letter, default) for kind in KINDS]
        title = f"{e.module.PAPER.partition(':')[0]}, {e.module.TITLE}"
        lines.append(f"| {title} | " + " | ".join(numbers) + " |")
    return "\n".join(lines) + "\n"


def headlines(found):
    """Return the table of the claims that the papers are known for."""
    lines = ["| paper | claim | by the letter | by our default |", "|---|---|---|---|"]
    for e in found:
        title = f"{e.module.PAPER.partition(':')[0]}, {e.module.TITLE.partition(':')[0]}"
        lines += [
            f"| {title} | {cell(v.claim.text)} | {v.letter} | {in_column(v)} |"
            for v in e.verdicts
            if v.claim.headline
        ]
    return "\n".join(lines) + "\n"


def cost_table(experiment):
    """Return CPU seconds and memory of each fit of an experiment."""
    rows = experiment.costs
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    means = {metric: Means(rows, metric) for metric in metrics}
    places = list(dict.fromkeys((r["data"], r["method"], r["amount"]) for r in rows))
    heads = ["data", "method", "pairs", *(metric.replace("_", " ") for metric in metrics)]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for place in places:
        values = [f"{means[metric].at(*place):.0f}" for metric in metrics]
        lines.append("| " + " | ".join([*map(str, place), *values]) + " |")
    return "\n".join(lines) + "\n"


def times(found, folder):
    """Return the last part of the page."""
    parts = [TIMES]
    parts += [section(e, folder) for e in found if e.only_times]
    for e in found:
        if e.costs:
            parts += [f"### Costs of {e.module.TITLE}\n", e.module.COSTS_ARE, cost_table(e)]
    total = sum(e.run["cpu_seconds"] for e in found)
    lines = ["### What `make papers` takes", "", "| experiment | CPU s |", "|---|---|"]
    lines += [f"| `{e.module.NAME}` | {e.run['cpu_seconds']} |" for e in found]
    return "\n".join([*parts, *lines, f"| all | {total} |", ""])


def page_text(results, folder):
    """Return the page, from the tables and the names of the pictures."""
    found, missing = found_in(results)
    judged_ones = [e for e in found if not e.only_times]
    page = [INTRODUCTION, "## The headline claims\n", headlines(judged_ones)]
    page += ["## All experiments\n", overview(judged_ones)]
    paper = None
    for e in judged_ones:
        if paper != e.module.PAPER:
            paper = e.module.PAPER
            page += [f"## {paper}\n", SUMMARIES.get(paper.partition(":")[0], "")]
        page.append(section(e, folder))
    page.append(times(found, folder))
    if missing:
        page.append("Not run yet: " + ", ".join(f"`{name}`" for name in missing) + ".\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(page)).rstrip() + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="where the pictures are")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the tables are")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of papers.md")
    given = parser.parse_args(argv)
    folder = given.docs / "images" / "papers"
    for path in experiments():
        copy_pictures(path.stem, given.out, folder)
    text = page_text(given.results, folder)
    (given.docs / "papers.md").write_text(text, encoding="utf-8")
    print(f"{given.docs / 'papers.md'}: {text.count('### ')} parts")


if __name__ == "__main__":
    main()
