"""From numbers to a page: text, colours, versions and the template."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._optional import require
from linkwise._version import __version__
from linkwise.report.describe import cluster_features
from linkwise.report.map import MAX_POINTS, draw_map, map_data, static_map
from linkwise.report.numbers import (
    SILHOUETTE_SAMPLES,
    agreement,
    cluster_cuts,
    silhouette,
)
from linkwise.report.pairs import MAX_RINGED, drawn_pairs, pair_report, suspect_report
from linkwise.report.palette import PATHS, VIOLATED, looks
from linkwise.report.spectrum import eigen_plot, graph_spectrum
from linkwise.report.text import plain
from linkwise.report.values import date_of

if TYPE_CHECKING:
    from linkwise.report.inputs import Inputs
    from linkwise.report.spectrum import Spectrum

MAX_CLUSTERS = 100  # in legends and tables; the largest ones
MAX_DESCRIBED = 30  # clusters whose features are shown
MAX_PORTRAYED = 10  # clusters that are described in words
VIOLATED_ON_DARK = "#FF6B7A"
LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "scikit-learn": "scikit-learn", "numba": "numba"}


def render(inputs: Inputs, *, title: str, command: str | None, rng: np.random.RandomState) -> str:
    """Render the report."""
    # W -> eigenvalues; constraints, labels -> violated pairs; X or eigenvectors -> map
    spectrum = graph_spectrum(inputs, rng)
    pairs = pair_report(inputs)
    drawn = drawn_pairs(inputs, pairs)
    made = draw_map(inputs, spectrum, drawn, rng=rng)
    order = np.argsort(-inputs.clusters.sizes, kind="stable")
    script = _read("report.js")
    content: dict[str, Any] = {
        "title": title,
        "command": command,
        "inputs": inputs,
        "k": inputs.clusters.n_groups,
        "looks": looks(inputs.clusters.n_groups),
        "listed": sorted(order[:MAX_CLUSTERS].tolist()),
        "pairs": pairs,
        "suspects": suspect_report(inputs),
        "drawn": drawn,
        "max_ringed": MAX_RINGED,
        "map": made,
        "max_points": MAX_POINTS,
        "static": None if made is None else static_map(inputs, drawn, made, rng=rng),
        "data": None if made is None else as_json(map_data(inputs, drawn, made)),
        "shapes": PATHS,
        "truth": agreement(inputs),
        "made_at": _now(),
        "versions": _versions(),
        "style": _read("report.css"),
        "script": script,
        # Only this script may run, whatever else finds its way into the page.
        "script_hash": _hash(script),
        "violated": VIOLATED,
        "violated_dark": VIOLATED_ON_DARK,
    }
    content |= _clusters(inputs, spectrum, rng) | _spectrum(inputs, spectrum)
    content |= _features(inputs, order)
    rendered: str = _template().render(content)
    return rendered


def _clusters(inputs: Inputs, spectrum: Spectrum, rng: np.random.RandomState) -> dict[str, Any]:
    """Silhouette and cut, of all and of each cluster."""
    result = inputs.result
    points, space = inputs.X, "the data"
    if points is None and spectrum.vectors is not None:
        points, space = spectrum.vectors[:, : inputs.clusters.n_groups], "the spectral embedding"
    elif points is None and result is not None and result.embedding is not None:
        points, space = result.embedding, "the embedding of the method"
    return {
        "silhouette": None if points is None else silhouette(points, inputs.clusters, rng),
        "silhouette_space": space if points is not None else None,
        "silhouette_limit": SILHOUETTE_SAMPLES,
        "cuts": None if inputs.W is None else cluster_cuts(inputs.W, inputs.clusters),
    }


def _spectrum(inputs: Inputs, spectrum: Spectrum) -> dict[str, Any]:
    values = spectrum.values
    plot = None if values is None else eigen_plot(values, inputs.clusters.n_groups)
    return {"spectrum": spectrum, "plot": plot}


def _features(inputs: Inputs, order: Any) -> dict[str, Any]:
    features = inputs.features
    portrayed = order[:MAX_PORTRAYED].tolist()
    if features is None or features.is_empty:
        return {"described": [], "features": None, "portrayed": portrayed}
    found = cluster_features(features, inputs.clusters)
    steepest = max((abs(d.difference) for top in found.top for d in top), default=1.0)
    return {
        "features": found,
        "described": sorted(order[:MAX_DESCRIBED].tolist()),
        "portrayed": portrayed,
        "missing_above": found.missing_in_words(portrayed),
        "steepest": steepest,
    }


def value(number_or_day: float | None, kind: str, digits: int = 4) -> str:
    """Format the mean of a feature by its kind.

    Examples
    --------
    >>> value(0.25, "share"), value(18993.0, "date"), value(2.5, "number")
    ('25 %', '2022-01-01', '2.5')
    """
    if kind == "date":
        return date_of(number_or_day) or "–"
    is_known = number_or_day is not None and np.isfinite(number_or_day)
    if kind == "share" and number_or_day is not None and is_known:
        return percent(number_or_day)
    return number(number_or_day, digits)


# Template ----------------------------------------------------------------------------------


@cache
def _template() -> Any:
    jinja2 = require("jinja2", extra="report", purpose="Writing a report")
    environment = jinja2.Environment(
        autoescape=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"number": number, "percent": percent, "count": count, "value": value}
    return environment.from_string(_read("report.html.j2"))


def _read(name: str) -> str:
    return (resources.files("linkwise.report") / "templates" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    # The text of the element is the file between two line breaks.
    digest = hashlib.sha256(f"\n{script}\n".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def as_json(content: Any) -> str:
    r"""Write JSON that no HTML parser mistakes for the end of its script element.

    Examples
    --------
    >>> print(as_json({"id": "</script>&"}))
    {"id":"\u003c/script\u003e\u0026"}
    """
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def number(value: float | None, digits: int = 4) -> str:
    """Format for a reader: few digits, thousands apart, a real minus sign.

    Examples
    --------
    >>> [number(x) for x in (12345.6, 0.123456, -2.5, float("nan"), 1e-9)]
    ['12,346', '0.1235', '−2.5', '–', '1.00e−09']
    """
    if value is None or not np.isfinite(value):
        return "–"
    value += 0.0  # zero has no sign
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e7:
        text = f"{value:.2e}"
    elif size >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−")


def percent(share: float) -> str:
    """Format a share; a small one is not shown as nothing.

    Examples
    --------
    >>> percent(0.254), percent(0.0004), percent(1.0), percent(0.0)
    ('25 %', '0.04 %', '100 %', '0 %')
    """
    value = 100 * share
    exact = value in (0, 100) or 1 <= value <= 99
    return f"{value:.0f} %" if exact else f"{value:.2g} %" if value < 1 else f"{value:.1f} %"


def count(value: int, noun: str, plural: str | None = None) -> str:
    """Put a number before its noun.

    Examples
    --------
    >>> count(1, "pair"), count(1200, "pair"), count(2, "class", "classes")
    ('1 pair', '1,200 pairs', '2 classes')
    """
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"


def _now() -> str:
    """Return the time; a fixed one where a build asks to be reproducible."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return now.strftime("%Y-%m-%d %H:%M UTC")


def _versions() -> list[tuple[str, str]]:
    found = [("linkwise", __version__), ("Python", platform.python_version())]
    for name in LIBRARIES:
        try:
            found.append((name, metadata.version(name)))
        except metadata.PackageNotFoundError:
            continue
    return [(name, plain(version)) for name, version in found]
