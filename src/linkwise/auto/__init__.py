""":class:`linkwise.Auto`: the consensus of partitions of many kinds.

In the order of the mathematics: a `view` describes the samples in one `scaling`; `candidates` are
partitions of different kinds; their `prior` is what the samples say for them, their `evidence` how
they predict held-out constraints; the `ensemble` finds them, and their `consensus` is the answer.
`n_clusters` chooses the number of clusters, `report` tells what was chosen, `estimator` is the
method itself.
"""

from linkwise.auto.estimator import Auto

__all__ = ["Auto"]
