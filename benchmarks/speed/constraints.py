"""Closure, conflicts and checks of a million pairs: seconds, and what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from harness import best_of, report

from linkwise import ConflictError, Constraints

if TYPE_CHECKING:
    from collections.abc import Iterator

N_PAIRS = 1_000_000


def flipped(constraints: Constraints, share: float) -> Constraints:
    """Return the pairs with a share of them turned into the other kind."""
    pairs, is_must = constraints.table.pairs, constraints.table.is_must_link
    is_must ^= np.random.RandomState(0).uniform(size=len(pairs)) < share
    return Constraints(constraints.n_samples, pairs[is_must], pairs[~is_must])


def duplicates(constraints: Constraints, n: int = 3) -> Iterator[Constraints]:
    """Return equal constraints, made beforehand, for which nothing is cached yet."""
    table = constraints.table
    must, cannot = table.pairs[table.is_must_link], table.pairs[~table.is_must_link]
    return iter([Constraints(constraints.n_samples, must, cannot) for _ in range(n)])


def attempt(call) -> str:
    """Return what a call found, in a word."""
    try:
        answer = call()
    except ConflictError:
        return "conflict"
    return f"{len(answer):,} proofs" if isinstance(answer, list) else "fine"


def main() -> None:
    rows = []
    for n_samples, share in ((1_000_000, 0.0), (100_000, 0.0), (100_000, 0.1)):
        y = np.random.RandomState(0).randint(5, size=n_samples)
        known = flipped(Constraints.sample(y, N_PAIRS, random_state=0), share)
        known.check(None) if share == 0 else attempt(known.check)
        calls = (
            Constraints.closure,
            Constraints.conflicts,
            lambda c: c.check(2),
            lambda c: c.check(10),
        )
        row = [f"{n_samples:,}", f"{share:.0%}"]
        for call in calls:
            fresh = duplicates(known)
            found, cost = best_of(lambda call=call, c=fresh: attempt(lambda: call(next(c))))
            row.append(f"{cost.seconds:.2f} s ({found})")
        rows.append(row)
    header = ["samples", "flipped", "closure", "conflicts", "check(2)", "check(10)"]
    report("constraints", f"{N_PAIRS:,} pairs of 5 classes, one thread", header, rows)


if __name__ == "__main__":
    main()
