"""When to stop asking: what the share of samples that may still move means."""

from __future__ import annotations

STOP, FEW, HALF = 0.02, 0.05, 0.1  # bands of the share that is still to change
ENOUGH = 5  # answers; with fewer, all candidates may share one mistake


def may_stop(still_to_change: float, n_answers: int) -> bool:
    """Whether more answers will hardly change anything.

    >>> may_stop(0.01, 5), may_stop(0.01, 4), may_stop(0.02, 50)
    (True, False, False)
    """
    return still_to_change < STOP and n_answers >= ENOUGH
