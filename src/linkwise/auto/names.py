"""Names of candidates in words, for the report."""

from __future__ import annotations

STARTS = {
    "k-means": "k-means",
    "spectral": "spectral clustering",
    "coarse cut": "a cut of micro-clusters",
    "tree .1": "a spanning tree (sizes alike)",
    "tree .3": "a spanning tree",
    "robust tree .3": "a robust spanning tree",
    "merged 2": "micro-clusters merged by pairs",
    "merged 4": "smaller micro-clusters merged by pairs",
    "consensus": "what the first models agree on",
    "leader": "the best of the first models",
}
NAMES = {
    "without constraints": "the answer without constraints",
    "spectral": "spectral clustering",
    "coarse cut": "cut of micro-clusters",
    "linear": "linear model of the samples alone",
    "tree .1": "spanning tree, clusters of like sizes",
    "tree .3": "spanning tree",
    "robust tree .3": "robust spanning tree",
    "micro-clusters, 2 k": "micro-clusters merged by pairs",
    "micro-clusters, 4 k": "smaller micro-clusters merged by pairs",
    "e2cp": "pairs spread over the graph (E2CP)",
    "label propagation": "labels spread over the graph",
    "constrained cut": "normalised cut that satisfies the constraints",
}
MODELS = {
    "linear": "linear model",
    "smooth": "smooth model on the graph",
    "linear + graph": "linear and graph model",
    "linear + kernel": "linear and kernel model",
}


def in_words(name: str) -> str:
    """Return the name of a candidate in words; one that is not known stays as it is.

    Examples
    --------
    >>> in_words("linear + graph, coarse cut, penalty 0.2")
    'linear and graph model, begun from a cut of micro-clusters with pairs (penalty 0.2)'
    >>> in_words("mixture, k-means"), in_words("my own")
    ('Gaussian mixture, begun from k-means', 'my own')
    """
    if name in NAMES:
        return NAMES[name]
    kind, _, rest = name.partition(", ")
    if kind == "coarse cut":
        return f"{NAMES[kind]} with pairs ({rest})"
    if kind == "mixture" and rest in STARTS:
        return f"Gaussian mixture, begun from {STARTS[rest]}"
    if kind == "latent classes" and rest in STARTS:
        return f"latent classes, begun from {STARTS[rest]}"
    start = rest.partition(", ")[0]
    if kind in MODELS and start in STARTS:
        penalty = f" with pairs ({rest.partition(', ')[2]})" if "penalty" in rest else ""
        return f"{MODELS[kind]}, begun from {STARTS[start]}{penalty}"
    return name
