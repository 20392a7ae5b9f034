""":class:`linkwise.Auto`: the consensus of partitions of many kinds.

In the order of the mathematics: `views` describe the samples in one scaling by their `bases`;
`candidates` are partitions of many kinds (`coarse_cut`, `spanning_tree`, `mixture`, `learner`);
their `prior` is what the samples say for them, their `evidence` how they predict held-out
constraints, any of which may be wrong (`constraint_model`); the `ensemble` finds them, and their
`consensus` is the answer. `n_clusters` chooses the number of clusters, `report` tells what was
chosen, `estimator` is the method itself.
"""

from linkwise.auto.estimator import Auto

__all__ = ["Auto"]
