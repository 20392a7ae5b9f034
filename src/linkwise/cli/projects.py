"""What the terminal says about a project of the page, and the number of clusters that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.cli.console import counted

if TYPE_CHECKING:
    from linkwise.app.ledger import Facts
    from linkwise.app.project import Project
    from linkwise.cli.console import Console


def answers_told(facts: Facts) -> str:
    """Return how many answers count, as the page does, and how many pairs came from files."""
    n_answers = len(facts.given)
    n_imported = len(facts.answers) - n_answers
    imported = f" and {counted(n_imported, 'imported pair')}" if n_imported else ""
    return f"{counted(n_answers, 'answer')}{imported}"


def note_clusters(project: Project, typed: int | None, console: Console) -> None:
    """Say so if -k is another number than the project had."""
    path, last = project.path, project.last_run()
    chosen = project.ledger.facts.n_clusters  # on the page; 0 if it is to be found
    if typed is None or last is None:
        return
    if chosen is not None and chosen != typed:
        shown = counted(chosen, "cluster") if chosen else "that the number is found"
        console.note(f"{path}: -k {typed} is not used, as the page was told {shown}")
    elif chosen is None and last.stats["clusters"] != typed:
        before = counted(last.stats["clusters"], "cluster")
        console.note(f"{path}: had {before}, and now gets {typed} (-k); the answers stay")


def n_clusters_of(project: Project, typed: int | None) -> int | None:
    """Return the number of clusters that was chosen on the page, else -k; None: it is found."""
    chosen = project.ledger.facts.n_clusters
    return typed if chosen is None else chosen or None
