"""Rehearsals: how candidates predict constraints that were held back from them.

An expert that learns from constraints predicts them too well, even each one given the others: what
it has learnt from a constraint comes back through all samples. Therefore everything that learns
from constraints does so again without some of them, and is judged by these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.auto.consensus import likelihood, merge
from linkwise.auto.expert import log_softmax
from linkwise.auto.task import Task, cluster_of_label, settle
from linkwise.constraints.table import pair_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linkwise._types import Bools, Floats, Ints


SURE = 1e-3  # added to a probability before it becomes an opinion


class Opinion(NamedTuple):
    """What a candidate says about the vertices, with what it was told."""

    logits: Floats  # (n_vertices, k)
    noise: float


class Rehearsal(NamedTuple):
    """What candidates say that were told some of the constraints."""

    held: Bools  # which constraints were held back: pairs, then labels
    task: Task  # with the others, on the vertices alone
    parties: tuple[tuple[Opinion, ...], ...]  # for each party, its candidates


def deal(task: Task, n_folds: int, rng: np.random.RandomState) -> list[Bools]:
    """Deal the constraints into folds; return which ones are held back in each.

    What is said for and against one pair is one question, and goes into one fold. There are as many
    folds as questions, if these are few, and none for a single one.
    """
    ends = np.sort(task.pairs.ends.astype(np.intp), axis=1)
    question = np.unique(pair_keys(ends, task.vertices.size), return_inverse=True)[1].ravel()
    n_pairs = int(question.max(initial=-1)) + 1
    question = np.concatenate((question, n_pairs + np.arange(task.labelled.size)))
    n = n_pairs + task.labelled.size
    fold = (rng.permutation(n) % max(min(n_folds, n), 1))[question]
    return [fold == number for number in range(min(n_folds, n))] if n > 1 else []


def without_held(task: Task, held: Bools) -> Task:
    """Return the other constraints, on the vertices alone."""
    return task.told(~held)._replace(
        ridges={}, weights=task.weights[task.vertices], vertices=np.arange(task.vertices.size)
    )


def foretold(task: Task, rehearsals: Sequence[Rehearsal], opinions: Sequence[Opinion]) -> Floats:
    """Return the probability of what each constraint says, by one opinion for each rehearsal.

    A constraint that was never held back has nan.
    """
    said = np.full(task.belief.size, np.nan)
    n_pairs = len(task.pairs.ends)
    for rehearsal, opinion in zip(rehearsals, opinions, strict=True):
        Q = settle(rehearsal.task, opinion.logits, opinion.noise).probability
        pair, label = np.flatnonzero(rehearsal.held[:n_pairs]), rehearsal.held[n_pairs:]
        i, j = task.pairs.ends[pair].T
        together = np.einsum("ic,ic->i", Q[i], Q[j])
        said[pair] = np.where(task.pairs.together[pair], together, 1 - together)
        of = task.labelled[label], task.label[label]
        said[n_pairs:][label] = _foretold_labels(rehearsal.task, Q, *of)
    return np.clip(said, 0.0, 1.0)


def _foretold_labels(told: Task, Q: Floats, samples: Ints, label: Ints) -> Floats:
    """Return the probability of labels that were held back.

    Of a label that no other sample has it is foretold that the sample is in none of the clusters
    of the others.
    """
    cluster = cluster_of_label(Q[told.labelled], told.label)
    known = np.unique(told.label)
    own = Q[samples, cluster[label]]
    another = 1 - Q[samples][:, cluster[known]].sum(axis=1)
    said: Floats = np.where(np.isin(label, known), own, another)
    return said


def rehearsed_score(task: Task, said: Floats) -> float:
    """Return the log-likelihood of the constraints that were held back."""
    tested = np.isfinite(said)
    return likelihood(said[tested], task.belief[tested])[0]


def merged(opinions: Sequence[Opinion], weights: Floats) -> Opinion:
    """Return the average of opinions on the vertices."""
    found = merge(
        [np.exp(log_softmax(opinion.logits)) for opinion in opinions],
        weights,
        np.array([opinion.noise for opinion in opinions]),
    )
    return Opinion(np.log(found.probability + SURE), found.noise)
