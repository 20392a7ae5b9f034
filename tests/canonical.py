"""Data in the order in which `Auto` looks at them, for tests of what is inside it."""

from __future__ import annotations

from linkwise import Prepared
from linkwise.auto.views import canonical_order


def in_canonical_order(X, y):
    """Return samples, and a label for each, such that their numbers are those inside."""
    order = canonical_order(Prepared(X))
    return X[order], y[order]
