"""Parsed options: one class for each command that has many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DataRequest:
    """Where the data are and how to read them."""

    data: Path
    format: str | None = None
    graph: bool = False
    id_column: str | None = None
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    scale: bool | None = None
    impute: str | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: str = "."
    use: str | None = None
    labels: str | None = None
    truth: str | None = None
    constraints: Path | None = None
    pair_columns: str | None = None
    skip_unknown: bool = False
    prepared: Path | None = None
    max_gb: float = 1.0

    @property
    def has_pairs(self) -> bool:
        """Whether pairs are given, which may name the rows by their ids."""
        return self.constraints is not None

    @property
    def is_linkage(self) -> bool:
        """Whether records are linked, by a method that finds the number of clusters."""
        return (getattr(self, "method", None) or "").lower() == "linkage"

    @property
    def compares_words(self) -> bool:
        """Whether --text compares texts by their words, not letter by letter."""
        return False

    @property
    def name(self) -> str:
        """How DATA are called in messages."""
        return "standard input" if str(self.data) == "-" else str(self.data)


@dataclass(frozen=True, kw_only=True)
class ClusterRequest(DataRequest):
    """``linkwise cluster``."""

    n_clusters: int | None = None
    method: str
    settings: tuple[str, ...] = ()
    seed: int = 0
    threads: int | None = None
    output: Path | None = None
    column: str = "cluster"
    spreadsheet_safe: bool = False
    report: Path | None = None
    plot: Path | None = None
    review: Path | None = None
    duplicates: Path | None = None
    workers: int | None = None
    scheduler: str | None = None


@dataclass(frozen=True, kw_only=True)
class CompareRequest(DataRequest):
    """``linkwise compare``."""

    n_clusters: int | None = None
    methods: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    folds: int | None = None
    seed: int = 0
    threads: int | None = None
    output: Path | None = None


@dataclass(frozen=True, kw_only=True)
class AskRequest(DataRequest):
    """``linkwise ask``."""

    n_clusters: int | None = None
    method: str | None = None
    strategy: str | None = None
    session: Path | None = None
    project: Path | None = None
    output: Path | None = None
    spreadsheet_safe: bool = False
    seed: int | None = None  # 0 for a new session; a session keeps its own
    threads: int | None = None

    @property
    def is_review(self) -> bool:
        """Whether the review queue is asked, of a method that finds the number of clusters."""
        return self.is_linkage


@dataclass(frozen=True, kw_only=True)
class ServeRequest(DataRequest):
    """``linkwise serve``."""

    n_clusters: int | None = None
    method: str = "auto"
    shown_text: str | None = None
    image: str | None = None
    kind: str | None = None
    project: Path | None = None
    host: str = "127.0.0.1"
    port: int = 0
    browser: bool = True
    threads: int | None = None

    @property
    def compares_words(self) -> bool:
        """Of records letters are compared, as everywhere else."""
        return not self.is_linkage

    @property
    def is_review(self) -> bool:
        """Whether many small clusters are reviewed, whose number is found."""
        return self.is_linkage


@dataclass(frozen=True, kw_only=True)
class CheckRequest(DataRequest):
    """``linkwise check``, where DATA may be missing."""

    pairs: Path
    data: Path | None = None  # type: ignore[assignment]
    n_clusters: int | None = None
    limit: int = 20

    @property
    def has_pairs(self) -> bool:
        """Always."""
        return True
