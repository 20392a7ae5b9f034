""":class:`linkwise.Auto`: experts that learn from pairs, and their consensus.

`bases` describe the samples; an `expert` forms an opinion from them; `propagation` adds what the
pairs say; a `pool` of experts starts from `starts`, and their `consensus` is the answer.
`estimator` is the method itself.
"""

from linkwise.auto.estimator import Auto

__all__ = ["Auto"]
