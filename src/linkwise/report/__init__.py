"""One self-contained HTML file about a clustering. Needs the extra ``report`` (jinja2).

The modules, each of which imports only those above it::

    text       values as text that a page can hold
    palette    colours and shapes of clusters
    features   columns of numbers, money, dates, categories and texts
    inputs     arguments -> Inputs, or an error
    numbers    silhouette, cut, features, agreement with a truth
    spectrum   eigenvalues of the graph and their plot
    pairs      which constraints hold, why others do not, and which are likely wrong
    map        coordinates, and their encoding in the page
    page       the template
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils import check_random_state

from linkwise._files import atomic
from linkwise.report.inputs import Inputs
from linkwise.report.page import render
from linkwise.report.text import plain

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import ArrayLike

    from linkwise.constraints import Constraints

__all__ = ["render_report", "write_report"]

LONGEST_TITLE = 300
LONGEST_COMMAND = 20_000


def write_report(path: str | os.PathLike[str], **content: Any) -> None:
    """Write a report about a clustering to one HTML file that needs no network.

    The file is replaced only when the new one is complete and on the disk.

    Parameters
    ----------
    path : str or path-like
        The file to write; its folder exists.
    **content
        What the report is about: the arguments of :func:`render_report`.

    Examples
    --------
    >>> from linkwise import Constraints, SignedCSC
    >>> from linkwise.datasets import make_xor
    >>> X, y = make_xor(25, random_state=0)
    >>> known = Constraints.sample(y, 8, random_state=0)
    >>> model = SignedCSC(2, random_state=0).fit(X, constraints=known)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "xor.html"
    ...     write_report(path, X=X, labels=model.labels_, constraints=known, result=model)
    ...     "0 of 8 constraints violated" in path.read_text(encoding="utf-8")
    True
    """
    path = Path(path)
    if not path.parent.is_dir():
        message = f"The folder {path.parent} does not exist. Create it, or choose another path."
        raise FileNotFoundError(message)
    if "labels" not in content:
        message = "write_report needs labels=, the cluster of each sample: labels=model.labels_."
        raise TypeError(message)
    text = render_report(**content)
    with atomic(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")


def render_report(  # noqa: PLR0913  (each part of the page may be left out)
    *,
    labels: ArrayLike,
    X: Any = None,
    W: Any = None,
    constraints: Constraints | None = None,
    result: Any = None,
    ids: Iterable[object] | None = None,
    feature_names: Iterable[object] | None = None,
    feature_values: Any = None,
    cluster_names: Mapping[Any, object] | Iterable[object] | None = None,
    title: str | None = None,
    command: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    truth: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> str:
    """Return a report about a clustering as the text of one HTML page.

    What is given decides what is shown: `X` or `W` the map and the silhouette, `W` the cut and
    the eigenvalues, `constraints` which of them are violated and why, `X` or `feature_values` the
    features of each cluster, `truth` the agreement with it.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Cluster of each sample, integers or strings. -1 is a cluster like any other.
    X : array-like or sparse matrix of shape (n_samples, n_features) or Prepared, optional
        The data. Two columns are drawn as they are, more of them along their principal axes. A
        :class:`~linkwise.Prepared` brings its graph, and the eigenvectors that a fit has found.
    W : array-like or sparse matrix of shape (n_samples, n_samples), optional
        Symmetric non-negative graph.
    constraints : Constraints, optional
        What was known about the samples.
    result : Result or fitted estimator, optional
        Of a result: its objective and whether it converged; its embedding and eigenvalues where
        computing those of `W` would take longer than the fit. Of an estimator also its name, its
        parameters and its graph; of :class:`~linkwise.Auto` what it chose, and which constraints
        are more likely wrong than right.
    ids : iterable of length n_samples, optional
        Names of the samples; row numbers unless given.
    feature_names : iterable of length n_features, optional
        Names of the columns; those of a data frame unless given.
    feature_values : array-like, sparse matrix, data frame or mapping, optional
        Features in the units of their owner, one row a sample, to describe the clusters with: `X`
        unless given. Columns are numbers (also money, such as ``$1,200``), dates, or categories;
        other texts are shown with their samples only. Values may be missing: None, NaN or an empty
        text. A word such as ``none`` is a category, but a missing value among numbers.
    cluster_names : mapping or iterable, optional
        Names of the clusters: by their labels, or one for each label in increasing order.
    title : str, optional
        Title of the page.
    command : str, optional
        The command or program text that reproduces the clustering.
    parameters : mapping, optional
        Settings to list. The entry ``"method"`` is the name of the method.
    truth : array-like of shape (n_samples,), optional
        True classes, for comparison only. None, nan and the number -1 mean unknown: such samples
        are left out of the scores, and the report says how many.
    random_state : int, RandomState or None, default=None
        Pass an int for the same samples of large data, and so the same page but for its date.

    Returns
    -------
    str

    Examples
    --------
    >>> text = render_report(labels=["red", "red", "blue"], X=[[0.0], [0.1], [5.0]])
    >>> text.startswith("<!DOCTYPE html>"), "3 samples in 2 clusters" in text
    (True, True)
    """
    inputs = Inputs.of(
        {
            "labels": labels,
            "X": X,
            "W": W,
            "constraints": constraints,
            "result": result,
            "ids": ids,
            "feature_names": feature_names,
            "feature_values": feature_values,
            "cluster_names": cluster_names,
            "parameters": parameters,
            "truth": truth,
        }
    )
    return render(
        inputs,
        title=plain(title or "Clustering report", LONGEST_TITLE),
        command=None if command is None else _lines(command),
        rng=check_random_state(random_state),
    )


def _lines(command: str) -> str:
    """Clean a command line by line: its line breaks are part of it."""
    cut = str(command)[:LONGEST_COMMAND]
    return "\n".join(plain(line, LONGEST_COMMAND) for line in cut.splitlines())
