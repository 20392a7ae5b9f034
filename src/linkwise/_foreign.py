"""Data of other libraries: what to pass instead, said at once."""

from __future__ import annotations

from typing import Any

GRAPH = "With affinity='precomputed' pass its adjacency matrix:"
ADVICE = {
    ("anndata", "AnnData"): (
        "an AnnData object. Pass its features, fit(adata.obsm['X_pca']), or with "
        "affinity='precomputed' its graph, fit(adata.obsp['connectivities'])."
    ),
    ("networkx", "Graph"): (
        f"a networkx graph. {GRAPH} fit(networkx.to_scipy_sparse_array(graph, weight='weight'))."
    ),
    ("igraph", "Graph"): f"an igraph graph. {GRAPH} fit(graph.get_adjacency_sparse()).",
}


def check_foreign(X: Any) -> None:
    """Raise TypeError if `X` is of another library and no array, with the right call."""
    for cls in type(X).__mro__:
        advice = ADVICE.get((cls.__module__.partition(".")[0], cls.__name__))
        if advice is not None:
            raise TypeError(f"X is {advice}")
        if cls.__module__ == "torch" and cls.__name__ == "Tensor" and not _is_readable(X):
            raise TypeError(
                "X is a torch tensor that NumPy cannot read: it has a gradient, is sparse, or is "
                "not in main memory. Pass fit(X.detach().cpu().numpy()), of a sparse one "
                "X.to_dense() first."
            )


def _is_readable(tensor: Any) -> bool:
    return not tensor.requires_grad and tensor.device.type == "cpu" and not tensor.is_sparse
