"""Hard constraints among samples of which many are equal."""

from __future__ import annotations

import pytest

from linkwise import Constraints, Linkage


@pytest.mark.parametrize(
    ("values", "cannot_link"),
    [
        ("1010010", [(4, 2), (4, 5), (6, 0), (5, 1), (5, 2), (4, 3)]),
        ("01011110", [(2, 4), (6, 0), (6, 5), (6, 3), (7, 5), (1, 5)]),
    ],
)
def test_fewer_distinct_samples_than_clusters(values, cannot_link):
    known = Constraints(len(values), cannot_link=cannot_link)
    model = Linkage(3, hard=True, random_state=0).fit([[int(x)] for x in values], constraints=known)
    assert known.satisfied(model.labels_) == 1
    assert model.n_clusters_ == 3
