"""The pool: experts learn from pairs and labels, and the better ones are heard."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Affinity, Constraints
from linkwise.auto import pool
from linkwise.auto.bases import build_bases
from linkwise.auto.expert import Ridge
from linkwise.auto.pool import (
    Assignment,
    Candidate,
    Party,
    Start,
    Trial,
    hear,
    learn,
    soft,
    survey,
)
from linkwise.auto.propagation import Pairs
from linkwise.auto.rehearsal import Opinion, Rehearsal, deal, without_held
from linkwise.auto.task import Task, settle
from linkwise.partition import kmeans
from linkwise.search.objective import run_here, workers


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    bases = build_bases(X, Affinity().fit_transform(X), 3, fine=True)
    start = kmeans(bases.components.scores, 3, np.random.RandomState(0)).labels
    return bases, y, start


def task_of(bases, known, k=3):
    weights = np.where(known.constrained, 1.0, 0.3)
    features = bases.features()
    ridges = {name: Ridge.of(features[name], bases.penalty(name), weights) for name in bases.names}
    pairs = np.concatenate((known.must_link, known.cannot_link))
    vertices = np.flatnonzero(known.constrained)
    labels = np.full(known.n_samples, -1) if known.labels is None else known.labels
    labelled = np.flatnonzero(labels[vertices] >= 0)
    return Task(
        ridges,
        weights,
        vertices,
        Pairs(
            np.searchsorted(vertices, pairs).astype(np.int32).reshape(-1, 2),
            np.arange(len(pairs)) < len(known.must_link),
            np.ones(len(pairs)),
        ),
        labelled,
        labels[vertices][labelled],
        k,
    )


def test_an_expert_learns_a_metric_from_pairs(iris):
    # k-means mixes two species; pairs show the direction that tells them apart.
    bases, y, start = iris
    known = Constraints.sample(y, 75, random_state=0)
    task = task_of(bases, known)
    found = learn(task, Assignment(("linear",), "k-means", soft(start, 3), 0.05))
    free = ~known.constrained
    before = adjusted_rand_score(y[free], start[free])
    after = adjusted_rand_score(y[free], found.probability.argmax(axis=1)[free])
    assert after > before + 0.1
    assert found.said.mean() > 0.9


def test_names_of_clusters_do_not_matter(iris):
    bases, y, start = iris
    task = task_of(bases, Constraints.sample(y, 40, random_state=0))
    order = np.array([2, 0, 1])
    one = learn(task, Assignment(("linear", "graph"), "", soft(start, 3), 0.05))
    two = learn(task, Assignment(("linear", "graph"), "", soft(order[start], 3), 0.05))
    assert_allclose(one.probability, two.probability[:, order], atol=1e-6)
    assert_allclose(one.score, two.score, rtol=1e-6)


def test_a_label_is_evidence_on_its_own_sample(iris):
    bases, y, _ = iris
    partial = np.full(150, -1)
    partial[::10] = y[::10]
    task = task_of(bases, Constraints.from_labels(partial))
    # Opinions that know the species under other names, but for the first sample.
    opinion = np.log(soft((y + 1) % 3, 3))
    opinion[0] = np.log([0.05, 0.05, 0.9])
    found = settle(task, opinion, 0.05)
    assert found.probability[0].argmax() == (y[0] + 1) % 3
    assert found.said.argmin() == 0
    assert_allclose(found.said[0], 0.05, atol=1e-6)
    assert_allclose(found.probability[1:10], np.exp(opinion[1:10]), atol=1e-9)


def test_the_better_predictor_is_heard_more(iris):
    bases, y, _ = iris
    task = task_of(bases, Constraints.sample(y, 75, random_state=0))
    wrong = np.random.RandomState(0).permutation(y)
    found = survey(task, [Start("truth", y), Start("noise", wrong)], run_here)
    first = {c.name: w for c, w in zip(found.candidates[:2], found.consensus.weights, strict=False)}
    assert first["truth"] > first["noise"]


def test_threads_change_nothing(iris):
    bases, y, start = iris
    task = task_of(bases, Constraints.sample(y, 30, random_state=0))
    starts = [Start("a", start, spectral=True), Start("b", y)]
    alone = survey(task, starts, run_here)
    with workers(3) as run:
        together = survey(task, starts, run)
    assert np.array_equal(alone.settled.probability, together.settled.probability)


def test_interrupted_it_keeps_what_it_has(iris, monkeypatch):
    bases, y, start = iris
    task = task_of(bases, Constraints.sample(y, 30, random_state=0))
    calls = []

    def stops(task, plan, learn=learn):
        calls.append(plan)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return learn(task, plan)

    monkeypatch.setattr(pool, "learn", stops)
    found = survey(task, [Start("a", start), Start("b", y)], run_here)
    assert found.interrupted
    assert [c.name for c in found.candidates] == ["a"]
    monkeypatch.setattr(pool, "learn", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        survey(task, [Start("a", start)], run_here)


def test_predictions_without_constraints_do_not_depend_on_what_they_say(iris):
    bases, y, start = iris
    known = Constraints.sample(y, 30, random_state=0)
    task = task_of(bases, known)
    starts = [Start("a", start, plain=True)]
    said = survey(task, starts, run_here).without
    turned = task._replace(pairs=task.pairs._replace(together=~task.pairs.together))
    assert_allclose(survey(turned, starts, run_here).without, 1 - said, atol=1e-9)


def rehearsed(task, *parties):
    """Return rehearsals in which the candidates of parties say what their labels say."""
    return [
        Rehearsal(
            held,
            without_held(task, held),
            tuple(
                tuple(Opinion(np.log(soft(labels, 3))[task.vertices], 0.05) for labels in party)
                for party in parties
            ),
        )
        for held in deal(task, 5, np.random.RandomState(0))
    ]


def test_without_rehearsals_parties_have_their_priors(iris):
    bases, y, _ = iris
    task = task_of(bases, Constraints.sample(y, 60, random_state=0))
    plan = Assignment(("linear",), "", soft(y, 3), 0.05)
    good = learn(task, plan)
    # The same opinions under other names add nothing but weight.
    renamed = learn(task, plan._replace(start=soft((y + 1) % 3, 3)))
    found = hear(task, [Party([good], 1.0), Party([renamed], 0.5)])
    assert_allclose(found.consensus.weights, [2 / 3, 1 / 3], atol=1e-3)
    assert_allclose(found.scores, [good.score, renamed.score])
    alone = hear(task, [Party([good])])
    assert_allclose(found.consensus.probability, alone.consensus.probability, atol=1e-3)
    assert np.isnan(found.foretold).all()


def test_parties_are_matched_with_each_other():
    # A vague party is no reference for the names of clusters, even if it comes first.
    n, k = 150, 5
    nobody = np.zeros(0, np.intp)
    pairs = Pairs(np.zeros((0, 2), np.int32), np.zeros(0, bool), np.zeros(0))
    task = Task({}, np.ones(n), nobody, pairs, nobody, nobody, k)
    rng = np.random.RandomState(0)
    y = rng.randint(k, size=n)
    for _ in range(5):
        good = [soft(y, k)[:, rng.permutation(k)] for _ in range(2)]
        opinions = [rng.dirichlet(np.full(k, 20.0), size=n), *good]
        parties = [
            Party([Candidate("", Q, np.log(Q), np.zeros(0), 0.0, 0.05, None, 1)], prior)
            for Q, prior in zip(opinions, (0.1, 0.45, 0.45), strict=True)
        ]
        labels = hear(task, parties).consensus.probability.argmax(axis=1)
        assert adjusted_rand_score(y, labels) == 1.0


def test_who_predicts_what_was_held_back_is_heard(iris):
    bases, y, _ = iris
    task = task_of(bases, Constraints.sample(y, 60, random_state=0))
    wrong = np.random.RandomState(0).permutation(y)
    one = learn(task, Assignment(("linear",), "", soft(y, 3), 0.05))
    # Both know all constraints by heart; one of them predicts none that it was not told.
    parties = [Party([one], 1.0), Party([one], 0.5)]
    found = hear(task, parties, rehearsed(task, [wrong], [y]))
    assert found.consensus.weights[1] > 0.9
    assert found.scores[1] > found.scores[0] + 10
    assert hear(task, parties, rehearsed(task, [y], [wrong])).consensus.weights[1] < 0.1
    # Nothing to choose between them: the priors.
    equal = hear(task, parties, rehearsed(task, [y], [(y + 1) % 3]))
    assert_allclose(equal.consensus.weights, [2 / 3, 1 / 3], atol=1e-6)
    assert equal.foretold.min() > 0.7
    inside = hear(task, [Party([one, one])], rehearsed(task, [y, wrong]))
    assert inside.consensus.weights[0] > 0.95


def test_what_is_held_back_is_not_learnt_from(iris):
    bases, y, start = iris
    known = Constraints.sample(y, 30, random_state=0)
    task = task_of(bases, known)
    held = np.arange(30) % 5 == 0
    starts = [Start("a", start, spectral=True, voice=0.5), Start("b", y)]
    # The opposite of everything that is held back.
    turned = task._replace(pairs=task.pairs._replace(together=task.pairs.together ^ held))
    one, two = (pool._rehearse(t, Trial(held, starts), [], run_here) for t in (task, turned))
    assert len(one.parties[0]) == len(two.parties[0]) > 2
    for a, b in zip(one.parties, two.parties, strict=True):
        for here, there in zip(a, b, strict=True):
            assert_allclose(here.logits, there.logits)
            assert here.noise == there.noise


def test_a_survey_rehearses_every_candidate(iris):
    bases, y, start = iris
    task = task_of(bases, Constraints.sample(y, 30, random_state=0))
    starts = [Start("a", start, plain=True, voice=0.5), Start("b", y)]
    trials = [Trial(held, starts) for held in deal(task, 3, np.random.RandomState(0))]
    found = survey(task, starts, run_here, trials=trials)
    assert np.isfinite(found.foretold).all()
    # A start from the truth is no rehearsal, but it must show.
    assert found.foretold.mean() > 0.9
    some = survey(task, starts, run_here, trials=trials[:1])
    assert (np.isfinite(some.foretold) == trials[0].held).all()


def test_an_interrupted_rehearsal_keeps_the_answer(iris):
    bases, y, start = iris
    task = task_of(bases, Constraints.sample(y, 30, random_state=0))
    starts = [Start("a", start, plain=True), Start("b", y)]

    def trials():
        held = deal(task, 5, np.random.RandomState(0))
        yield Trial(held[0], starts)
        raise KeyboardInterrupt

    found = survey(task, starts, run_here, trials=trials())
    assert found.interrupted
    assert np.isfinite(found.foretold).sum() == 6
    whole = survey(task, starts, run_here)
    assert len(found.candidates) == len(whole.candidates)


def test_an_interrupted_start_is_an_interrupt(iris):
    bases, y, _ = iris
    task = task_of(bases, Constraints.sample(y, 30, random_state=0))

    def starts():
        raise SystemError from KeyboardInterrupt()
        yield

    with pytest.raises(KeyboardInterrupt):
        survey(task, starts(), run_here)


def test_without_constraints_labels_are_not_told_by_themselves(iris):
    bases, _, start = iris
    rng = np.random.RandomState(0)
    partial = np.full(150, -1)
    chosen = rng.choice(150, 12, replace=False)
    partial[chosen] = rng.permutation(np.repeat([0, 1, 2], 4))
    task = task_of(bases, Constraints.from_labels(partial))
    starts = [Start("a", start, plain=True)]
    trials = [Trial(held, starts) for held in deal(task, 4, np.random.RandomState(0))]
    by_themselves = survey(task, starts, run_here).without
    held_back = survey(task, starts, run_here, trials=trials).without
    # Random labels: matched with the clusters by all of them, they seem to be known.
    assert held_back.mean() < by_themselves.mean()


def test_those_told_nothing_are_heard_while_constraints_are_few(iris):
    bases, y, start = iris
    starts = [Start("a", start, plain=True), Start("b", y), Start("c", start, voice=1.0)]
    known = Constraints.sample(y, 3, random_state=0)
    found = survey(task_of(bases, known), starts, run_here)
    weights = found.consensus.weights
    assert_allclose(weights.sum(), 1.0)
    names = [c.name for c in found.candidates]
    total = pool.LEARNT + pool.UNTOLD + 1.0
    assert_allclose(weights[names.index("a, without constraints")], pool.UNTOLD / total)
    assert_allclose(weights[names.index("c, repeated")], 1 / total)


def test_a_start_with_a_voice_is_repeated(iris):
    bases, y, start = iris
    task = task_of(bases, Constraints.sample(y, 3, random_state=0))
    found = survey(task, [Start("c", start, voice=1.0)], run_here)
    repeated = next(c for c in found.candidates if c.name == "c, repeated")
    assert adjusted_rand_score(start, repeated.opinion.argmax(axis=1)) > 0.8


def test_a_quick_survey_asks_rigid_experts_alone(iris):
    bases, y, start = iris
    task = task_of(bases, Constraints.sample(y, 30, random_state=0))
    starts = [Start("a", start, plain=True, voice=1.0), Start("b", y)]
    found = survey(task, starts, run_here, quick=True)
    assert [(c.name, c.expert.names) for c in found.candidates] == [
        ("a", ("linear",)),
        ("b", ("linear",)),
    ]
