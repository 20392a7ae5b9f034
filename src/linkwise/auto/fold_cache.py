"""Folds of an earlier fit: with one constraint more, no candidate is found again without some.

A new constraint joins a fold. What was found without the fold has not seen it, so it is held out
there as well. What was found without another fold has not seen it either: its predictions are made
with a little less than all other constraints, and are still honest. When a fold lacks a tenth of
the constraints, it is found again, one such fold in a fit; at once when it lacks a fifth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linkwise.auto.evidence import LEAVE_ONE_OUT, fold_numbers, is_dense, n_folds_for
from linkwise.linalg.warm import WarmStarts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from linkwise._types import Bools, Floats, Ints
    from linkwise.auto.constraint_model import ConstraintModel
    from linkwise.auto.trial import Trial
    from linkwise.auto.view import Design, View


Key = tuple[int, int, int, float]  # samples, kind or label, belief
NEW_SHARE, NEW_LEAST = 0.1, 2  # new constraints that join folds of an earlier fit, at most
STALE_SHARE = 0.1  # constraints that a fold may lack before it is found again


class FoldCache:
    """The folds of the last fit, for one number of clusters."""

    def __init__(self) -> None:
        self._fold: dict[Key, int] = {}  # of each constraint
        self._mode: tuple[int, bool] | None = None  # the seed, and whether pairs are dense
        self._trials: dict[str, list[Trial]] = {}  # of each scaling
        self._warm: dict[str, WarmStarts] = {}
        self._ends: dict[str, dict[str, tuple[Ints, Floats]]] = {}

    def __reduce__(self) -> tuple[type[FoldCache], tuple[()]]:
        """Leave the folds out of a pickled model: they only make a later fit quicker."""
        return FoldCache, ()

    def begin(self, model: ConstraintModel, seed: int) -> Ints:
        """Return the fold of each constraint: that of the last fit, if they are nearly the same."""
        keys = constraint_keys(model)
        dense = is_dense(model)
        if (seed, dense) != self._mode or not self._can_continue(keys):
            rng = np.random.RandomState(seed)
            number = fold_numbers(model, rng, n_folds_for(model.n_constraints))
            self._trials, self._ends = {}, {}
        else:
            if len(keys) == len(self._fold):  # the same fit again gives the same answer
                self._ends = {}
            number = self._continued(keys, n_shared=1 if dense else 2)
        self._mode, self._fold = (seed, dense), dict(zip(keys, number.tolist(), strict=True))
        return number

    @property
    def _is_dense(self) -> bool:
        return self._mode is not None and self._mode[1]

    def _can_continue(self, keys: Sequence[Key]) -> bool:
        n_old = len(self._fold)
        n_new = len(keys) - n_old
        most = max(NEW_LEAST, NEW_SHARE * n_old)
        return n_old > LEAVE_ONE_OUT and 0 <= n_new <= most and self._fold.keys() <= set(keys)

    def _continued(self, keys: Sequence[Key], *, n_shared: int) -> Ints:
        """Put new constraints into the smallest folds, or with those of the same samples."""
        number = np.array([self._fold.get(key, -1) for key in keys])
        sizes = np.bincount(number[number >= 0])
        of_samples = {key[:n_shared]: fold for key, fold in self._fold.items()}
        for at in np.flatnonzero(number < 0).tolist():
            samples = keys[at][:n_shared]
            number[at] = of_samples.get(samples, int(sizes.argmin()))
            of_samples[samples] = number[at]
            sizes[number[at]] += 1
        return number

    def warm_starts(self, view: View) -> WarmStarts:
        """Return where solvers begin that use all constraints."""
        return self._warm.setdefault(_name(view), WarmStarts())

    def learners_ends(self, view: View) -> dict[str, tuple[Ints, Floats]]:
        """Return where learners that use all constraints began and ended; see `Trial.ends`."""
        return self._ends.setdefault(_name(view), {})

    def trials(
        self, view: View, whole: Trial, design: Callable[[], Design], hidden: Sequence[Bools]
    ) -> list[Trial]:
        """Return the trial of each fold; those of the last fit, but for the one that lacks most."""
        known = self._trials.get(_name(view))
        if known is None:
            known = [whole.without(one, design) for one in hidden]
        else:
            given = np.array([int((~one).sum()) for one in hidden])
            lack = given - np.array([trial.model.n_constraints for trial in known])
            worst = int(lack.argmax())
            known = list(known)
            limit = np.maximum(NEW_LEAST, STALE_SHARE * given)
            for at, one in enumerate(hidden):
                is_stale = lack[at] > limit[at] and (at == worst or lack[at] > 2 * limit[at])
                if is_stale or (self._is_dense and _has_seen(known[at], whole, one)):
                    known[at] = whole.without(one, design)
        self._trials[_name(view)] = known
        return known


def _has_seen(trial: Trial, whole: Trial, hidden: Bools) -> bool:
    """Whether a trial was given a constraint that is hidden from its fold now."""
    keys = constraint_keys(whole.model)
    return not set(constraint_keys(trial.model)).isdisjoint(
        keys[at] for at in np.flatnonzero(hidden).tolist()
    )


def constraint_keys(model: ConstraintModel) -> list[Key]:
    """Return what each constraint says: samples, kind or label, belief."""
    i, j = np.sort(model.vertices[model.pairs.ends], axis=1).T.tolist()
    together = model.pairs.together.astype(int).tolist()
    pairs = zip(i, j, together, model.pairs.belief.tolist(), strict=True)
    labelled = model.vertices[model.labelled].tolist()
    labels = zip(labelled, model.label.tolist(), strict=True)
    return [*pairs, *((i, -1, label, 1.0) for i, label in labels)]


def _name(view: View) -> str:
    return "" if view.scaling is None else view.scaling.name
