"""Experts that learn from pairs, and their consensus: the pieces of :class:`linkwise.Auto`.

`bases` describe the samples; an `expert` forms an opinion from them; `propagation` adds what the
pairs say; a `pool` of experts starts from `starts`, and their `consensus` is the answer.
"""
