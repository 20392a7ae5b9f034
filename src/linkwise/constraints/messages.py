"""Infeasible constraints in words: what proves it, and what to do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise.constraints.coloring import Certificate
    from linkwise.constraints.proof import Proof

    Bracket = tuple[int, int | None]

LISTED_IN_FULL = 30  # links in a message; of more, the 20 most connected
LISTED_OF_MANY = 20

SOFT = 'or allow violations: Auto with hard=False, ConstrainedCut with constraints_mode="soft"'


def certificate_in_words(
    found: Certificate,
    proof: Proof,
    *,
    witness: tuple[int, ...],
    n_clusters: int,
    name: Callable[[int], str] = str,
) -> str:
    """Say which samples and links a number of clusters cannot satisfy.

    `name` tells what samples are called.
    """
    links = _links(proof, name)
    if found.kind == "odd ring":
        return _odd_ring(found, proof, name)
    if found.kind == "clique":
        return (
            f"The samples {_some(witness, name)}, or samples must-linked to them, are pairwise "
            f"cannot-linked, by {links}. They need {len(witness)} clusters, but n_clusters "
            f"is {n_clusters}."
        )
    if found.kind == "wheel":
        hubs, ring = witness[: found.n_hubs], witness[found.n_hubs :]
        each_other = " and to each other" if len(hubs) > 1 else ""
        more = "needs one" if len(hubs) == 1 else f"need {len(hubs)}"
        return (
            f"The odd ring of {len(ring)} cannot-linked samples {_some(ring, name, 20)} needs 3 "
            f"clusters, and {_some(hubs, name)}, cannot-linked to all of it{each_other}, {more} "
            f"more, but n_clusters is {n_clusters}: see {links}, between these samples or "
            "samples must-linked to them."
        )
    return _minimal_set(found, links, n_clusters)


def around_ring(proof: Proof) -> tuple[int, ...]:
    """Return the samples around an odd ring."""
    witness: list[int] = []
    for i, j in proof.evidence:
        witness += [i] if not witness or witness[-1] != i else []
        witness += [j] if j != witness[0] else []
    return tuple(witness)


def _odd_ring(found: Certificate, proof: Proof, name: Callable[[int], str]) -> str:
    edges = proof.evidence
    shown = name(edges[0][0])
    for (_, j), (following, _) in zip(edges, edges[1:] + edges[:1], strict=True):
        shown += f" | {name(j)}" + ("" if j == following else f" - {name(following)}")
    return (
        f"Two clusters cannot satisfy the odd ring of {len(found.vertices)} cannot-links {shown} "
        "(| means cannot-linked, - in one must-link group): going around it, the cluster changes "
        f"an odd number of times. It consists of {_links(proof, name)}."
    )


def _minimal_set(found: Certificate, links: str, n_clusters: int) -> str:
    how = (
        "none of these cannot-links can be spared in this proof"
        if found.is_minimal
        else "perhaps some of these links can be spared: the time was up"
    )
    return (
        f"{n_clusters} clusters cannot satisfy {links}. Exhaustive search over these "
        f"{len(found.vertices)} groups of samples found no way; {how}."
    )


def remedy(proof: Proof, bracket: Bracket) -> str:
    """Say what to do about it."""
    lower, upper = bracket
    enough = f" ({upper} suffice for certain)" if upper is not None and upper > lower else ""
    action = "remove one of these links, give it a belief below 1"
    if proof.labelled:
        action = f"correct a label, {action}"
    return f"Set n_clusters to at least {lower}{enough}, {action}, {SOFT}."


def _some(samples: tuple[int, ...], name: Callable[[int], str], limit: int = 10) -> str:
    return ", ".join(map(name, samples[:limit])) + (", ..." * (len(samples) > limit))


def _links(proof: Proof, name: Callable[[int], str]) -> str:
    """Name the links of a proof by their positions and samples, labels by their samples."""
    parts = [
        positions("cannot-link", proof.cannot_link_row, proof.cannot_link, name=name),
        positions("must-link", proof.must_link_row, proof.must_link, name=name),
    ]
    if proof.labelled:
        known = zip(proof.labelled, proof.labels, strict=True)
        shown = ", ".join(f"{name(sample)} (label {label})" for sample, label in known)
        parts.append(f"the labels of the samples {shown}")
    parts = [part for part in parts if part]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def positions(
    kind: str,
    rows: tuple[int, ...],
    pairs: tuple[tuple[int, int], ...],
    *,
    name: Callable[[int], str] = str,
) -> str:
    """Name links by their positions and samples; of many, the most connected."""
    if not rows:
        return ""
    shown = list(zip(rows, pairs, strict=True))
    lead = f"the {kind}{'s' if len(rows) > 1 else ''} "
    if len(rows) > LISTED_IN_FULL:
        degree = Counter(sample for pair in pairs for sample in pair)
        shown.sort(key=lambda link: -min(degree[link[1][0]], degree[link[1][1]]))
        shown = sorted(shown[:LISTED_OF_MANY])
        lead = f"{len(rows)} {kind}s (all are in .{kind.replace('-', '_')} of this error), such as "
    return lead + ", ".join(f"#{row} ({', '.join(map(name, pair))})" for row, pair in shown)
