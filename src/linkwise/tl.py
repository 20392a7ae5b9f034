"""Clustering of AnnData, in the manner of scanpy's tools. Needs the extra ``anndata``."""

from __future__ import annotations

import os
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from linkwise._hints import hint
from linkwise._optional import require
from linkwise.constraints import Constraints
from linkwise.plots import COLOURS
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from linkwise._types import AnyArray

SHOWN_SUSPECTS = 100  # constraints that are most likely wrong, kept in uns


def cluster(  # noqa: PLR0913  (as many as a tool of scanpy has)
    adata: Any,
    labels: str | None = None,
    pairs: Any = None,
    *,
    n_clusters: int | str = "auto",
    key_added: str = "linkwise",
    use_rep: str | None = None,
    neighbors_key: str | None = None,
    method: str = "auto",
    random_state: int | None = 0,
    copy: bool = False,
    **params: Any,
) -> Any:
    """Cluster cells under what is known of some of them.

    Parameters
    ----------
    adata : AnnData
        The cells. Clusters are found on the graph of ``scanpy.pp.neighbors``, if there is one and
        `use_rep` is not given, else on features.
    labels : str, default=None
        Column of ``obs`` with the types that are known; missing values are unknown.
    pairs : Constraints, data frame, mapping or path, default=None
        Pairs of cells by their ``obs_names``; see :meth:`linkwise.Constraints.from_frame`.
    n_clusters : int or "auto", default="auto"
        Number of clusters; a method that cannot choose it takes the number of labels.
    key_added : str, default="linkwise"
        Where the answer is written.
    use_rep : str, default=None
        Key of ``obsm`` with features, or ``"X"``; ``"X_pca"`` if there is no graph.
    neighbors_key : str, default=None
        Key of ``uns`` under which ``scanpy.pp.neighbors`` wrote its graph.
    method : str, default="auto"
        A key of :data:`linkwise.METHODS`.
    random_state : int, default=0
        Seed, for the same answer each time.
    copy : bool, default=False
        Whether to return a copy with the answer, and leave `adata` as it is.
    **params
        Parameters of the method.

    Returns
    -------
    AnnData or None
        Depends on `copy`. ``obs[key_added]`` are the clusters as a categorical, with the names of
        the labels; ``obsm[f"{key_added}_proba"]`` the probability of each cluster, if the method
        has it; ``uns[key_added]`` the parameters, the names, the report and the suspects.

    Examples
    --------
    >>> import anndata, numpy as np, linkwise
    >>> cells = anndata.AnnData(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]))
    >>> cells.obs["known"] = ["B", None, None, "T", None, None]
    >>> linkwise.tl.cluster(cells, "known", use_rep="X", method="gfhf")
    >>> cells.obs["linkwise"].tolist()
    ['B', 'B', 'B', 'T', 'T', 'T']
    """
    require("anndata", extra="anndata", purpose="linkwise.tl")
    if isinstance(labels, str) and key_added == labels:
        raise ValueError(f"key_added={key_added!r} would overwrite the labels. Choose another.")
    adata = adata.copy() if copy else adata
    known = _known(adata, labels, pairs)
    Method = _method(method)
    X, where = _graph_or_features(adata, Method, use_rep=use_rep, neighbors_key=neighbors_key)
    given = {"affinity": "precomputed"} if where.startswith("obsp") else {}
    k = _number(n_clusters, known, Method)
    model = Method(k, **given, random_state=random_state, **params)
    model.fit(X, constraints=known)
    shown = {"method": method, "labels": labels or "", "data": where, **params}
    _write(adata, model, key_added, labels=labels, params=shown)
    return adata if copy else None


# What is known ------------------------------------------------------------------------------


def _known(adata: Any, labels: str | None, pairs: Any) -> Constraints:
    """Return labels and pairs as constraints."""
    n, ids = adata.n_obs, adata.obs_names.tolist()
    found = None
    if labels is not None:
        if not isinstance(labels, str):
            raise TypeError(
                f"labels is the name of a column of obs, not a {type(labels).__name__}. Store it "
                "first: adata.obs['known'] = ..."
            )
        if labels not in adata.obs:
            columns = adata.obs.columns.tolist()
            message = f"obs has no column {labels!r}.{hint(labels, columns, listed=columns)}"
            raise KeyError(message)
        found = Constraints.from_labels(adata.obs[labels])
    if pairs is None:
        none = Constraints(n) if found is None else found
        return Constraints.from_table(n, none.table, labels=none.known_labels, ids=ids)
    if not isinstance(pairs, Constraints):
        pairs = _reader(pairs, n)(pairs, ids=ids)
    own = pairs.known_labels if found is None else found.known_labels
    return Constraints.from_table(n, pairs.table, labels=own, ids=ids)


def _reader(pairs: Any, n_samples: int) -> Any:
    """Return what reads pairs of this kind."""
    if hasattr(pairs, "columns") or hasattr(pairs, "keys"):
        return Constraints.from_frame
    if isinstance(pairs, (str, os.PathLike)):
        return Constraints.from_file
    raise TypeError(
        f"pairs is a {type(pairs).__name__}. Give a data frame, a mapping or a file with the "
        "columns i, j, link, which names cells as obs_names does; or, by positions, "
        f"linkwise.Constraints({n_samples}, must_link=[(0, 1)], cannot_link=[(0, 2)])."
    )


def _method(key: str) -> Any:
    if key not in METHODS:
        raise ValueError(f"There is no method {key!r}.{hint(key, METHODS, listed=METHODS)}")
    return METHODS[key]


def _number(n_clusters: int | str, known: Constraints, Method: Any) -> int | str | None:
    """Return the number of clusters, which only some methods find themselves."""
    if n_clusters != "auto" or Method().n_clusters in ("auto", None):
        return n_clusters if n_clusters != "auto" else Method().n_clusters
    n_labels = known.facts.classes.size
    if n_labels < 2:
        raise ValueError(f"{Method.__name__} needs n_clusters: give a number, or two labels.")
    return n_labels


# Data ---------------------------------------------------------------------------------------


def _graph_or_features(
    adata: Any, Method: Any, *, use_rep: str | None, neighbors_key: str | None
) -> tuple[Any, str]:
    """Return the graph of the cells, or their features, and where they are."""
    key = _graph_key(adata, neighbors_key)
    if use_rep is None and key in adata.obsp and not Method().needs_features:
        W = csr_array(adata.obsp[key]).astype(np.float64)
        return csr_array((W + W.T) / 2), f"obsp[{key!r}]"  # symmetric up to rounding to 32 bits
    if use_rep == "X":
        return adata.X, "X"
    rep = use_rep or "X_pca"
    if rep not in adata.obsm:
        have = ", ".join([*adata.obsm, "X"])
        if use_rep is not None:
            raise KeyError(f"obsm has no {rep!r}.{hint(rep, adata.obsm)} There are: {have}.")
        raise KeyError(
            f"obsm has no {rep!r}, and there is no graph {key!r} in obsp. Compute neighbours first "
            f"(scanpy.pp.neighbors), or choose with use_rep: {have}."
        )
    return adata.obsm[rep], f"obsm[{rep!r}]"


def _graph_key(adata: Any, neighbors_key: str | None) -> str:
    """Return the key of the graph in obsp, where scanpy says that it is."""
    found = adata.uns.get(neighbors_key or "neighbors")
    if found is None and neighbors_key is not None:
        raise KeyError(f"uns has no {neighbors_key!r}; scanpy.pp.neighbors writes it.")
    return str((found or {}).get("connectivities_key", "connectivities"))


# The answer ---------------------------------------------------------------------------------


def _write(adata: Any, model: Any, key: str, *, labels: str | None, params: dict[str, Any]) -> None:
    """Write clusters, probabilities and report, as plain values that .h5ad files can hold."""
    pandas = require("pandas", extra="anndata", purpose="linkwise.tl")
    names = getattr(model, "classes_", np.arange(int(model.labels_.max()) + 1))
    texts = np.array([str(name) for name in names], dtype=object)
    order = _in_order(adata, labels, texts)
    adata.obs[key] = pandas.Categorical(texts[model.labels_], categories=texts[order])
    adata.obs[key] = adata.obs[key].cat.remove_unused_categories()
    probability = getattr(model.result_, "probability", None)
    if probability is not None:
        adata.obsm[f"{key}_proba"] = probability[:, order]
    found: dict[str, Any] = {
        "params": {
            name: value if _is_plain(value) else str(value) for name, value in params.items()
        },
        "classes": texts[order].astype(str),
    }
    if hasattr(model, "report_"):
        found["report"] = "\n".join(model.report_.summary())
    suspects = getattr(model.result_, "suspects", ())
    if suspects:
        found["suspects"] = _suspect_table(adata, suspects)
    adata.uns[key] = found
    _write_colours(adata, key, labels)


def _in_order(adata: Any, labels: str | None, texts: AnyArray) -> AnyArray:
    """Return the clusters in the order of the label's categories; others after them."""
    column = None if labels is None else adata.obs[labels]
    categories = [] if column is None else getattr(column.dtype, "categories", ())
    rank = {str(name): k for k, name in enumerate(categories)}
    return np.argsort([rank.get(text, len(rank)) for text in texts], kind="stable")


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool))


def _suspect_table(adata: Any, suspects: Any) -> Any:
    """Return the constraints that are most likely wrong, by the names of the cells."""
    pandas = require("pandas", extra="anndata", purpose="linkwise.tl")
    names = adata.obs_names
    rows = [
        {
            "kind": one.kind,
            "i": names[one.samples[0]],
            "j": names[one.samples[-1]] if len(one.samples) > 1 else "",
            "probability": np.nan if one.probability is None else one.probability,
        }
        for one in suspects[:SHOWN_SUSPECTS]
    ]
    table = pandas.DataFrame(rows)
    table.index = table.index.astype(str)
    return table


def _write_colours(adata: Any, key: str, labels: str | None) -> None:
    """Give clusters the colours that scanpy gave to the labels of the same names."""
    given = adata.uns.get(f"{labels}_colors")
    column = None if labels is None else adata.obs[labels]
    names = [str(name) for name in getattr(getattr(column, "dtype", None), "categories", ())]
    adata.uns.pop(f"{key}_colors", None)  # of another number of clusters
    if given is None or len(given) < len(names):
        return  # scanpy chooses
    colour = dict(zip(names, map(str, given), strict=False))
    others = cycle([c for c in COLOURS if c not in colour.values()] or COLOURS)
    found = [colour.get(name) or next(others) for name in adata.obs[key].cat.categories]
    adata.uns[f"{key}_colors"] = np.array(found)
