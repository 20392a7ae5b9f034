"""Agreement: what the candidates say together when pairs were chosen, not drawn.

Questions are asked where the candidates of :class:`~linkwise.Auto` disagree, and their answers
share mistakes: one that happens to predict them is soon far ahead, and may be wrong elsewhere.
Weights by likelihood are therefore flattened before the candidates are averaged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkwise.auto.consensus import FEW, STACK_FROM, TRUST, centred_mean, softened
from linkwise.auto.constraint_model import matching

if TYPE_CHECKING:
    from linkwise._types import Floats
    from linkwise.auto.report import Committee

FLATTENED = 0.25  # power of the weights: four chosen answers tell as much as one that was drawn
CENTRE_POWER = 1.0  # of the agreement with the centre, by which weights are multiplied


def agreed(committee: Committee, found: Floats, n_constraints: int) -> Floats | None:
    """Return probabilities of clusters by all candidates, numbered as those that `Auto` found.

    None if the weights are not by likelihood: with few constraints the prior decides, with many
    they are stacked; or if only a part of the samples was partitioned.
    """
    n, k = found.shape
    if not FEW <= n_constraints < STACK_FROM or committee.samples.size < n:
        return None
    parts = [softened(one, k, TRUST) for one in committee.labels]
    mean = centred_mean(parts, committee.weights**FLATTENED, power=CENTRE_POWER).probability
    return mean[:, matching(mean, found)]
