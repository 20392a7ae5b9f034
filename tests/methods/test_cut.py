"""The constrained cut: optimal where that can be enumerated, feasible always, honest if not."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array, load_npz
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from linkwise import Affinity, ConstrainedCut, Constraints, metrics
from linkwise.exceptions import ConflictError, ConvergenceWarning
from linkwise.methods import cut
from linkwise.methods.cut import constrained_cut, constrained_kmeans
from linkwise.search import cut as cut_search
from linkwise.search import objective as search_objective
from linkwise.search import soft as soft_search
from linkwise.search.soft import Path as SoftPath

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"


def tiny_graph(rng, n):
    """A connected random graph."""
    upper = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.5), 1)
    upper[np.arange(n - 1), np.arange(1, n)] = rng.uniform(0.1, 1.0, size=n - 1)
    return csr_array(upper + upper.T)


def tiny_constraints(rng, n, k):
    """Up to n - 1 pairs; every third time of a partition with one cluster too many."""
    n_classes = k + (rng.randint(3) == 0)
    y = rng.randint(n_classes, size=n)
    pairs = [tuple(rng.choice(n, 2, replace=False)) for _ in range(rng.randint(n))]
    return Constraints(
        n,
        must_link=[(i, j) for i, j in pairs if y[i] == y[j]],
        cannot_link=[(i, j) for i, j in pairs if y[i] != y[j]],
    )


def all_partitions(n, k):
    """Every partition of n items into k non-empty clusters, some of them several times."""
    z = np.array(list(product(range(k), repeat=n - 1)), np.int8)
    z = np.column_stack((np.zeros(len(z), np.int8), z))
    return z[[np.unique(row).size == k for row in z]]


def all_cuts(W, z, k):
    """The normalised cut of every row of `z`, densely."""
    W = W.toarray()
    d = W.sum(axis=1)
    total = np.zeros(len(z))
    for c in range(k):
        inside = (z == c).astype(float)
        total += 1 - np.einsum("pi,ij,pj->p", inside, W, inside, optimize=True) / (inside @ d)
    return total


def keeps(constraints, z):
    must, cannot = constraints.must_link, constraints.cannot_link
    return (z[:, must[:, 0]] == z[:, must[:, 1]]).all(axis=1) & (
        z[:, cannot[:, 0]] != z[:, cannot[:, 1]]
    ).all(axis=1)


@pytest.mark.parametrize(("k", "n", "n_graphs"), [(2, 8, 40), (2, 12, 40), (3, 8, 40), (3, 10, 40)])
def test_tiny_graphs_are_solved_to_the_optimum(k, n, n_graphs):
    rng = np.random.RandomState(10 * k + n)
    partitions = all_partitions(n, k)
    n_feasible = n_optimal = 0
    for seed in range(n_graphs):
        W, known = tiny_graph(rng, n), tiny_constraints(rng, n, k)
        feasible = keeps(known, partitions)
        if not feasible.any():
            with pytest.raises(ConflictError) as raised:
                constrained_cut(W, known, k, random_state=seed)
            assert_proves(raised.value, known, k)
            continue
        best = all_cuts(W, partitions[feasible], k).min()
        found = constrained_cut(W, known, k, random_state=seed)
        assert found.n_violated == 0
        assert np.unique(found.labels).size == k
        assert found.objective == pytest.approx(metrics.ncut(W, found.labels), abs=1e-12)
        n_feasible += 1
        n_optimal += found.objective <= best + 1e-9
    assert n_optimal >= 0.99 * n_feasible
    assert n_feasible > 0.7 * n_graphs


def assert_proves(error, known, k):
    """The pairs that an error names are the user's own, and impossible by themselves."""
    if error.kind == "too few groups":
        assert np.unique(known.components()).size < k
        return
    alone = Constraints(
        known.n_samples,
        must_link=known.must_link[np.isin(known.facts.must_link_row, error.must_link)],
        cannot_link=known.cannot_link[np.isin(known.facts.cannot_link_row, error.cannot_link)],
    )
    assert len(alone.must_link) == len(error.must_link)
    assert len(alone.cannot_link) == len(error.cannot_link)
    samples = np.unique(np.concatenate((alone.must_link, alone.cannot_link)))
    assert samples.size <= 9
    z = np.zeros((k**samples.size, known.n_samples), np.int8)
    z[:, samples] = list(product(range(k), repeat=samples.size))
    assert not keeps(alone, z).any()


@given(st.integers(0, 10_000), st.integers(2, 4))
@settings(max_examples=30)
def test_tiny_data_are_solved_to_the_least_sum_of_squares(seed, k):
    rng = np.random.RandomState(seed)
    X = rng.normal(size=(7, 2))
    known = tiny_constraints(rng, 7, k)
    partitions = all_partitions(7, k)
    partitions = partitions[keeps(known, partitions)]
    if not len(partitions):
        with pytest.raises(ConflictError):
            constrained_kmeans(X, known, k, random_state=0)
        return

    def sum_of_squares(z):
        return sum(((X[z == c] - X[z == c].mean(axis=0)) ** 2).sum() for c in range(k))

    found = constrained_kmeans(X, known, k, random_state=0)
    assert found.n_violated == 0
    assert found.objective == pytest.approx(min(map(sum_of_squares, partitions)), rel=1e-9)


# Golden cases --------------------------------------------------------------------------------


def golden_cases():
    names = {
        path.stem.split("__")[1].rsplit("_k", 1)[0]: int(path.stem.rsplit("_k", 1)[1].split("_")[0])
        for program in ("cosc", "sssc")
        for path in sorted(GOLDEN.glob(f"results/{program}__*.json"))
    }
    return sorted(names.items()) or [("none", 0)]


def golden_case(name):
    data, _, pairs = name.partition("_p") if "_p" in name else (name.removesuffix("_none"), "", "")
    W = csr_array(load_npz(GOLDEN / "graphs" / f"{data}_W.npz"))
    if not pairs:
        return W, Constraints(W.shape[0])
    stored = np.load(GOLDEN / "constraints" / f"{data}_p{pairs}.npz")
    known = Constraints(
        W.shape[0], must_link=stored["must_link"], cannot_link=stored["cannot_link"]
    )
    return W, known


@pytest.mark.skipif(not GOLDEN.exists(), reason="the original programs' answers are not here")
@pytest.mark.parametrize(("name", "k"), golden_cases())
def test_no_feasible_answer_of_the_original_programs_is_better(name, k):
    W, known = golden_case(name)
    found = constrained_cut(W, known, k, random_state=0)
    assert known.n_violated(found.labels) == 0
    references = []
    for program in ("cosc", "sssc"):
        for path in GOLDEN.glob(f"results/{program}__{name}_k{k}*.json"):
            labels = np.array(json.loads(path.read_text(encoding="utf-8"))["labels"])
            if known.n_violated(labels) == 0:
                references.append(metrics.ncut(W, labels))
    assert found.objective <= min(references, default=np.inf) * (1 + 1e-9)


# Hard ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(240, 2, centers=4, cluster_std=2.5, random_state=3)
    return X, y, Affinity(8).fit_transform(X)


@pytest.mark.parametrize("objective", ["ncut", "kmeans"])
def test_every_constraint_holds_where_plain_clustering_breaks_many(blobs, objective):
    X, y, _ = blobs
    known = Constraints.sample(y, 200, random_state=0)
    free = ConstrainedCut(4, objective=objective, random_state=0).fit(X)
    assert known.n_violated(free.labels_) > 10
    found = ConstrainedCut(4, objective=objective, random_state=0).fit(X, constraints=known)
    assert known.n_violated(found.labels_) == found.result_.n_violated == 0
    assert found.result_.objective >= free.result_.objective


@pytest.mark.parametrize("mode", ["hard", "soft"])
@pytest.mark.parametrize("objective", ["ncut", "kmeans"])
def test_the_answer_depends_on_the_seed_and_not_on_threads(blobs, objective, mode):
    X, y = (part[:120] for part in blobs[:2])
    known = Constraints.sample(y, 60, random_state=0)
    fits = [
        ConstrainedCut(
            4, objective=objective, constraints_mode=mode, random_state=7, n_jobs=n_jobs
        ).fit(X, constraints=known)
        for n_jobs in (1, 2, None)
    ]
    for fit in fits[1:]:
        assert_array_equal(fit.labels_, fits[0].labels_)


def test_uncertain_pairs_are_traded_while_certain_ones_hold(blobs):
    _, y, W = blobs
    certain = Constraints.sample(y, 60, random_state=0)
    doubtful = Constraints.sample(y, 60, random_state=1)
    known = Constraints(
        240,
        must_link=np.concatenate((certain.must_link, doubtful.must_link)),
        cannot_link=np.concatenate((certain.cannot_link, doubtful.cannot_link)),
        must_link_belief=np.repeat([1, 0.6], [len(certain.must_link), len(doubtful.must_link)]),
        cannot_link_belief=np.repeat(
            [1, 0.6], [len(certain.cannot_link), len(doubtful.cannot_link)]
        ),
    )
    counts = []
    for strength in (0.0, 1.0, 50.0):
        found = constrained_cut(W, known, 4, strength=strength, random_state=0)
        assert certain.n_violated(found.labels) == 0
        counts.append(doubtful.n_violated(found.labels))
    assert counts[0] > counts[1] > counts[2] == 0


def test_labels_are_obeyed(blobs):
    X, y, _ = blobs
    partial = np.full(240, -1)
    partial[::8] = y[::8]
    found = ConstrainedCut(4, random_state=0).fit(X, constraints=Constraints.from_labels(partial))
    for c in range(4):
        assert np.unique(found.labels_[partial == c]).size == 1
    assert np.unique(found.labels_[partial >= 0]).size == 4


def test_all_pairs_of_the_truth_give_the_truth():
    y = np.arange(60) % 5
    W = tiny_graph(np.random.RandomState(0), 60)
    found = constrained_cut(W, Constraints.from_labels(y), 5, random_state=0)
    assert_array_equal(found.labels, y)


@pytest.mark.parametrize("k", [2, 3])
def test_isolated_vertices_and_pieces_find_their_place(k):
    W = np.kron(np.eye(4), np.ones((5, 5))) - np.eye(20)
    W[0], W[:, 0] = 0, 0  # isolated
    known = Constraints(20, must_link=[(0, 6)], cannot_link=[(6, 11)])
    found = constrained_cut(csr_array(W), known, k, random_state=0)
    assert found.n_violated == 0
    assert found.objective == pytest.approx(0, abs=1e-9)
    assert np.unique(found.labels).size == k
    nothing = constrained_cut(csr_array((6, 6)), Constraints(6), k, random_state=0)
    assert np.unique(nothing.labels).size == k


def test_duplicates_may_be_kept_apart():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]], 6, axis=0)
    known = Constraints(18, cannot_link=[(0, 1), (6, 7)])
    for objective in ("ncut", "kmeans"):
        found = ConstrainedCut(3, objective=objective, random_state=0).fit(X, constraints=known)
        assert found.result_.n_violated == 0


def test_many_clusters():
    X, y = make_blobs(600, 8, centers=100, cluster_std=1.0, random_state=0)
    known = Constraints.sample(y, 600, random_state=0)
    found = ConstrainedCut(100, effort="fast", random_state=0).fit(X, constraints=known)
    assert found.result_.n_violated == 0
    assert np.unique(found.labels_).size == 100
    assert adjusted_rand_score(y, found.labels_) > 0.9


def test_as_many_clusters_as_groups():
    known = Constraints(6, must_link=[(0, 1)])
    found = constrained_cut(tiny_graph(np.random.RandomState(0), 6), known, 5, random_state=0)
    assert_array_equal(found.labels, [0, 0, 1, 2, 3, 4])


def test_fewer_groups_than_clusters_is_refused():
    X = np.arange(5.0)[:, None]
    known = Constraints(5, must_link=[(0, 1), (1, 2), (3, 4)])
    with pytest.raises(ConflictError, match="2 group"):
        ConstrainedCut(3).fit(X, constraints=known)


def test_impossible_constraints_name_their_proof():
    X = np.random.RandomState(0).normal(size=(30, 2))
    four = [(4, 9), (9, 17), (4, 17), (20, 4), (20, 9), (21, 17)]
    known = Constraints(30, must_link=[(20, 21)], cannot_link=[(1, 2), *four])
    with pytest.raises(ConflictError, match="4 clusters") as raised:
        ConstrainedCut(3).fit(X, constraints=known)
    assert raised.value.kind == "clique"
    assert set(raised.value.cannot_link) == {1, 2, 3, 4, 5, 6}
    assert raised.value.must_link == (0,)
    assert ConstrainedCut(4, random_state=0).fit(X, constraints=known).result_.n_violated == 0


def test_islands_are_reported():
    # A path of two cliques; one sample is kept out of the clique it hangs on.
    W = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    W[3, 4] = W[4, 3] = 0.1
    known = Constraints(8, must_link=[(0, 7)], cannot_link=[(0, 1), (7, 6)])
    found = constrained_cut(csr_array(W), known, 2, random_state=0)
    for i in found.islands:
        assert W[i, found.labels == found.labels[i]].sum() == 0
    outside = [
        i for i in range(8) if W[i, found.labels == found.labels[i]].sum() == 0 and W[i].any()
    ]
    assert_array_equal(found.islands, outside)


@pytest.mark.parametrize("objective", ["ncut", "kmeans"])
def test_interrupting_keeps_the_best_so_far(blobs, objective, monkeypatch):
    X, y, _ = blobs
    known = Constraints.sample(y, 100, random_state=0)

    def interrupted(tasks):
        yield tasks[0]()
        raise KeyboardInterrupt

    monkeypatch.setattr(search_objective, "run_here", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = ConstrainedCut(4, objective=objective, random_state=0).fit(X, constraints=known)
    assert found.result_.n_violated == 0
    assert not found.result_.converged


@pytest.mark.parametrize("objective", ["ncut", "kmeans"])
def test_interrupting_before_the_first_start_still_satisfies(blobs, objective, monkeypatch):
    X, y, _ = blobs
    known = Constraints.sample(y, 100, random_state=0)

    def at_once(tasks):
        raise KeyboardInterrupt

    monkeypatch.setattr(search_objective, "run_here", at_once)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = ConstrainedCut(4, objective=objective, random_state=0).fit(X, constraints=known)
    assert found.result_.n_violated == 0
    assert np.unique(found.labels_).size == 4


def test_threads_hand_over_what_is_done_before_an_interrupt():
    def interrupt():
        raise KeyboardInterrupt

    done = []
    with search_objective.workers(2) as run:
        results = run([lambda: "first", interrupt, lambda: "never seen"])
        done.append(next(results))
        with pytest.raises(KeyboardInterrupt):
            next(results)
    assert done == ["first"]


@pytest.mark.parametrize("stage", range(1, 40, 4))
def test_interrupting_soft_mode_ends_it_wherever_it_is(noisy_blobs, monkeypatch, stage):
    X, _, noisy, _ = noisy_blobs
    W = Affinity().fit_transform(X)
    calls = []

    def counted(*arguments, **named):
        calls.append(1)
        if len(calls) == stage:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    original = cut_search.hierarchy
    monkeypatch.setattr(cut_search, "hierarchy", counted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = constrained_cut(W, noisy, 3, constraints_mode="soft", random_state=0)
    assert not found.converged
    assert len(calls) == stage  # nothing was begun afterwards
    assert np.unique(found.labels).size == 3
    assert (found.noise is None) == (1.0 not in [point.strength for point in found.path])


def test_progress_is_printed(blobs, capsys):
    X, _, _ = blobs
    ConstrainedCut(4, random_state=0, verbose=1).fit(X)
    out = capsys.readouterr().out
    assert "start 1" in out
    assert "generation" in out


def test_a_wrong_answer_of_the_search_would_be_noticed(blobs, monkeypatch):
    _, y, W = blobs
    known = Constraints.sample(y, 50, random_state=0)
    broken = search_objective.Found(np.zeros(240, np.int32), 0.0, 0)
    monkeypatch.setattr(cut_search.CutObjective, "search", lambda *_args, **_named: broken)
    with pytest.raises(AssertionError, match="violated"):
        constrained_cut(W, known, 4)


def test_predict_returns_the_labels_of_training_samples(blobs):
    X, y, _ = blobs
    known = Constraints.sample(y, 100, random_state=0)
    for objective in ("ncut", "kmeans"):
        fit = ConstrainedCut(4, objective=objective, random_state=0).fit(X, constraints=known)
        assert_array_equal(fit.predict(X), fit.labels_)
    center = fit.cluster_centers_[2][None, :] + 1e-7
    assert fit.predict(center).tolist() == [2]


# Soft ----------------------------------------------------------------------------------------


def flipped(known, share, seed):
    """Turn some must-links into cannot-links and back; return which rows are wrong."""
    rng = np.random.RandomState(seed)
    must, cannot = known.must_link, known.cannot_link
    wrong_must = rng.uniform(size=len(must)) < share
    wrong_cannot = rng.uniform(size=len(cannot)) < share
    noisy = Constraints(
        known.n_samples,
        must_link=np.concatenate((must[~wrong_must], cannot[wrong_cannot])),
        cannot_link=np.concatenate((cannot[~wrong_cannot], must[wrong_must])),
    )
    wrong = {tuple(p) for p in [*cannot[wrong_cannot].tolist(), *must[wrong_must].tolist()]}
    return noisy, wrong


CORNERS = np.array([[0.0, 0.0], [5.0, 0.0], [2.5, 4.5]])


@pytest.fixture(scope="module")
def noisy_blobs():
    X, y = make_blobs(150, 2, centers=CORNERS, cluster_std=1.3, random_state=5)
    noisy, wrong = flipped(Constraints.sample(y, 80, random_state=0), 0.12, 0)
    return X, y, noisy, wrong


def test_soft_constraints_survive_wrong_answers_and_name_them(noisy_blobs):
    X, y, noisy, wrong = noisy_blobs
    hard = ConstrainedCut(3, random_state=0).fit(X, constraints=noisy)
    soft = ConstrainedCut(3, constraints_mode="soft", random_state=0).fit(X, constraints=noisy)
    scores = [adjusted_rand_score(y, fit.labels_) for fit in (hard, soft)]
    assert scores[1] > scores[0] + 0.05
    named = {suspect.samples for suspect in soft.result_.suspects}
    assert len(named & wrong) >= 0.5 * len(wrong)
    assert len(named & wrong) >= 0.8 * len(named)
    # What a wrong answer dragged along is obeyed, so the estimate is low rather than high.
    share = len(wrong) / noisy.n_pairs
    assert share / 2 <= soft.result_.noise <= share + 0.02
    assert soft.result_.strength == 1.0
    # The list begins with what resists longest.
    resisting = [suspect.strength for suspect in soft.result_.suspects]
    assert resisting == sorted(resisting, reverse=True)


def test_a_suspect_carries_the_row_it_was_given_in(noisy_blobs):
    X, _, noisy, _ = noisy_blobs
    must, cannot = noisy.must_link[::-1], noisy.cannot_link[::-1]
    known = Constraints(150, must_link=must, cannot_link=cannot)
    soft = ConstrainedCut(3, constraints_mode="soft", random_state=0).fit(X, constraints=known)
    for suspect in soft.result_.suspects:
        given = must if suspect.kind == "must-link" else cannot
        assert tuple(given[suspect.row].tolist()) == suspect.samples


def test_the_path_leads_from_no_constraints_to_hard_ones(noisy_blobs):
    X, y, _, _ = noisy_blobs
    known = Constraints.sample(y, 80, random_state=0)
    W = Affinity().fit_transform(X)
    soft = constrained_cut(W, known, 3, constraints_mode="soft", random_state=0)
    free = constrained_cut(W, Constraints(150), 3, random_state=0)
    hard = constrained_cut(W, known, 3, random_state=0)
    strengths = [point.strength for point in soft.path]
    assert strengths == [0, 0.125, 0.25, 0.5, 1, 2, 4, 8]
    assert soft.path[0].objective == pytest.approx(free.objective, abs=1e-9)
    assert soft.path[-1].objective == pytest.approx(hard.objective, abs=1e-9)
    # Where each point is optimal, the objective rises and the violations fall with the price.
    objectives = [point.objective for point in soft.path]
    violations = [point.n_violated for point in soft.path]
    assert objectives == sorted(objectives)
    assert violations == sorted(violations, reverse=True)
    for point in soft.path:
        assert point.n_violated == known.n_violated(point.labels)
        assert point.objective == pytest.approx(metrics.ncut(W, point.labels))


def test_a_budget_of_violations_is_kept_at_the_smallest_strength(noisy_blobs):
    X, _, noisy, _ = noisy_blobs
    W = Affinity().fit_transform(X)
    for budget in (20, 5, 0):
        found = constrained_cut(
            W, noisy, 3, constraints_mode="soft", violations=budget, random_state=0
        )
        assert found.n_violated <= budget
        weaker = [point for point in found.path if point.strength < found.strength]
        assert all(point.n_violated > budget for point in weaker)
        # Bisection leaves a gap of at most a sixteenth of an octave, by logarithm.
        below = max((point.strength for point in weaker), default=0)
        assert below == 0 or found.strength / below < 2 ** (1 / 8)


def test_contradictions_are_no_error_when_soft():
    X, _ = make_moons(80, noise=0.1, random_state=0)
    known = Constraints(80, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    with pytest.raises(ConflictError):
        ConstrainedCut(2).fit(X, constraints=known)
    soft = ConstrainedCut(2, constraints_mode="soft", random_state=0).fit(X, constraints=known)
    assert soft.result_.n_violated >= 1


def test_a_budget_that_cannot_be_met_is_said():
    X, _ = make_moons(40, noise=0.1, random_state=0)
    known = Constraints(40, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    model = ConstrainedCut(2, constraints_mode="soft", violations=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="at most 0"):
        model.fit(X, constraints=known)
    assert model.result_.n_violated == 1


def test_wrong_labels_are_found_when_soft():
    X, y = make_blobs(120, 2, centers=3, cluster_std=0.8, random_state=1)
    partial = np.full(120, -1)
    partial[::6] = y[::6]
    wrong = [0, 30]
    partial[wrong] = (y[wrong] + 1) % 3
    known = Constraints.from_labels(partial)
    soft = ConstrainedCut(3, constraints_mode="soft", random_state=0).fit(X, constraints=known)
    assert adjusted_rand_score(y, soft.labels_) > 0.95
    assert {(s.kind, s.samples) for s in soft.result_.suspects} == {("label", (i,)) for i in wrong}
    assert soft.result_.noise == 2 / 20


@pytest.mark.parametrize("objective", ["ncut", "kmeans"])
def test_no_cluster_consists_of_a_label_alone(objective):
    # On a graph where all samples are alike, labels would rather have no samples at all.
    X = np.random.RandomState(0).normal(scale=1e-3, size=(12, 2))
    known = Constraints(12, labels=[0, 1, 2] + [-1] * 9)
    for strength in (0.0, 0.1, 1.0):
        found = ConstrainedCut(
            3,
            objective=objective,
            constraints_mode="soft",
            strength=strength,
            affinity=Affinity(None, scale=1.0),
            random_state=0,
        ).fit(X, constraints=known)
        for point in found.result_.path:
            assert np.unique(point.labels).size == 3
        assert np.unique(found.labels_).size == 3


def test_too_many_labels_are_refused_when_soft():
    known = Constraints.from_labels([0, 1, 2, -1, -1])
    with pytest.raises(ConflictError, match="3 different labels"):
        ConstrainedCut(2, constraints_mode="soft").fit(np.arange(5.0)[:, None], constraints=known)
    with pytest.raises(ConflictError, match="3 different labels"):
        constrained_kmeans(np.arange(5.0)[:, None], known, 2, constraints_mode="soft")


def test_numbers_of_numpy_are_numbers(noisy_blobs):
    X, _, noisy, _ = noisy_blobs
    W = Affinity().fit_transform(X)
    for strength in (np.float32(0.25), np.int64(1)):
        found = constrained_cut(
            W, noisy, 3, constraints_mode="soft", strength=strength, random_state=0
        )
        assert found.strength == float(strength)


def test_a_budget_needs_soft_constraints(blobs):
    with pytest.raises(ValueError, match="violations=3 is a budget for soft"):
        ConstrainedCut(4, violations=3).fit(blobs[0])


def test_noise_is_what_strength_one_violates_whatever_was_chosen(noisy_blobs):
    X, _, noisy, _ = noisy_blobs
    W = Affinity().fit_transform(X)
    found = constrained_cut(W, noisy, 3, constraints_mode="soft", strength=4, random_state=0)
    at_one = next(point for point in found.path if point.strength == 1)
    assert at_one.n_violated > found.n_violated
    assert found.noise == at_one.n_violated / noisy.n_pairs


def test_suspects_are_violated_at_half_the_strength_too():
    known = Constraints(4, must_link=[(0, 1)], cannot_link=[(0, 2), (2, 3)])
    apart = np.array([0, 1, 1, 1], np.int32)  # breaks the must-link and (2, 3)
    obeyed = np.array([0, 0, 1, 0], np.int32)
    together = np.array([0, 0, 0, 1], np.int32)  # breaks (0, 2)
    path = SoftPath((0.5, 1.0, 2.0, 4.0), (apart, apart, together, obeyed))
    at_one = soft_search.find_suspects(known, path, 1.0)
    assert [(s.kind, s.samples, s.strength) for s in at_one] == [
        ("must-link", (0, 1), 2.0),
        ("cannot-link", (2, 3), 2.0),
    ]
    assert soft_search.find_suspects(known, path, 2.0) == ()  # (0, 2) was fine at half of it
    assert soft_search.find_suspects(known, path, 4.0) == ()


def test_beliefs_weigh_when_soft(noisy_blobs):
    X, _, noisy, wrong = noisy_blobs
    W = Affinity().fit_transform(X)
    is_wrong = [
        [tuple(pair) in wrong for pair in part.tolist()]
        for part in (noisy.must_link, noisy.cannot_link)
    ]
    doubted = Constraints(
        150,
        must_link=noisy.must_link,
        cannot_link=noisy.cannot_link,
        must_link_belief=np.where(is_wrong[0], 1e-6, 1.0),
        cannot_link_belief=np.where(is_wrong[1], 1e-6, 1.0),
    )
    right = noisy.subset(~np.concatenate(is_wrong))
    found = constrained_cut(W, doubted, 3, constraints_mode="soft", strength=8, random_state=0)
    assert right.n_violated(found.labels) == 0
    assert found.n_violated > 0


def test_many_pairs_choose_the_strength_by_cross_validation(monkeypatch):
    X, y = make_blobs(150, 2, centers=CORNERS, cluster_std=1.6, random_state=5)
    noisy, _ = flipped(Constraints.sample(y, 250, random_state=0), 0.25, 0)
    assert noisy.n_conflicts  # a hard method has nothing to offer here
    monkeypatch.setattr(soft_search, "MANY_PAIRS", 10_000)
    fixed = ConstrainedCut(3, constraints_mode="soft", random_state=0).fit(X, constraints=noisy)
    assert fixed.result_.strength == 1.0
    monkeypatch.setattr(soft_search, "MANY_PAIRS", 200)
    chosen = ConstrainedCut(3, constraints_mode="soft", random_state=0).fit(X, constraints=noisy)
    assert chosen.result_.strength in [point.strength for point in chosen.result_.path]
    # And with a clear winner, that one is taken.
    monkeypatch.setattr(soft_search, "clearly_best", lambda scores, default: 2)
    other = ConstrainedCut(3, constraints_mode="soft", random_state=0).fit(X, constraints=noisy)
    assert other.result_.strength == 0.25
    free = ConstrainedCut(3, random_state=0).fit(X)
    scores = [adjusted_rand_score(y, fit.labels_) for fit in (free, chosen)]
    assert scores[1] > scores[0]


def test_without_constraints_soft_and_hard_agree(blobs):
    _, _, W = blobs
    empty = Constraints(240)
    hard = constrained_cut(W, empty, 4, random_state=0)
    soft = constrained_cut(W, empty, 4, constraints_mode="soft", random_state=0)
    assert soft.objective == pytest.approx(hard.objective, rel=1e-3)
    assert soft.noise == 0
    assert soft.suspects == ()


def test_data_of_any_size_and_an_outlier():
    X, _ = make_blobs(120, 2, centers=5, cluster_std=0.5, random_state=0)
    expected = ConstrainedCut(5, objective="kmeans", random_state=0).fit(X).labels_
    with np.errstate(over="raise"):
        for factor in (1e-150, 1e200):
            found = ConstrainedCut(5, objective="kmeans", random_state=0).fit(X * factor)
            assert_array_equal(found.labels_, expected)
    far = np.vstack((X, [[1e7, 1e7]]))
    values = [
        ConstrainedCut(6, objective="kmeans", random_state=seed).fit(far).result_.objective
        for seed in range(4)
    ]
    assert max(values) <= min(values) * (1 + 1e-6)


def test_pieces_of_the_graph_go_where_the_cut_is_lowest():
    # A clique that a cannot-link cuts in two, and must-linked pairs that are pieces of their own.
    rng = np.random.RandomState(0)
    for _ in range(5):
        upper = np.triu(rng.uniform(size=(12, 12)), 1)
        W = np.zeros((32, 32))
        W[:12, :12] = upper + upper.T
        for i in range(12, 32, 2):
            W[i, i + 1] = W[i + 1, i] = rng.uniform()
        known = Constraints(
            32, must_link=[(i, i + 1) for i in range(12, 32, 2)], cannot_link=[(0, 1)]
        )
        labels = constrained_cut(csr_array(W), known, 2, random_state=0).labels
        best = metrics.ncut(W, labels)
        for i in range(12, 32, 2):
            moved = labels.copy()
            moved[[i, i + 1]] = 1 - moved[i]
            assert metrics.ncut(W, moved) >= best - 1e-9


def test_a_refit_forgets_the_other_objective(blobs):
    X, _, W = blobs
    model = ConstrainedCut(4, objective="kmeans", random_state=0).fit(X)
    assert model.cluster_centers_.shape == (4, 2)
    model.set_params(affinity="precomputed")
    with pytest.raises(ValueError, match="is a graph, but"):
        model.fit(W)
    model.set_params(objective="ncut").fit(W)
    assert not hasattr(model, "cluster_centers_")
    assert_array_equal(model.predict(W), model.labels_)


def test_scaling_the_graph_changes_nothing(blobs):
    _, y, W = blobs
    known = Constraints.sample(y, 60, random_state=0)
    expected = constrained_cut(W, known, 4, random_state=0).labels
    for factor in (1e-320, 1e-100, 1e100):
        assert_array_equal(constrained_cut(W * factor, known, 4, random_state=0).labels, expected)


def test_the_estimator_calls_the_function_of_its_objective(blobs):
    X, y, W = blobs
    known = Constraints.sample(y, 60, random_state=0)
    by_cut = ConstrainedCut(4, affinity=Affinity(8), random_state=0).fit(X, constraints=known)
    assert_array_equal(by_cut.labels_, cut.constrained_cut(W, known, 4, random_state=0).labels)
    by_means = ConstrainedCut(4, objective="kmeans", random_state=0).fit(X, constraints=known)
    expected = cut.constrained_kmeans(X, known, 4, random_state=0).labels
    assert_array_equal(by_means.labels_, expected)
    assert not hasattr(by_means, "affinity_matrix_")
