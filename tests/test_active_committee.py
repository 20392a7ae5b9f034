"""Questions that tell the candidate partitions of Auto apart, and the session around them."""

from __future__ import annotations

import json
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, Constraints, Prepared
from linkwise.active import Answer, Session, TruthOracle, fits, simulate
from linkwise.active.agreement import agreed
from linkwise.active.committee import balance, propose, questions, telling_apart
from linkwise.active.doubts import DOUBT, doubts
from linkwise.active.fits import GATE, Fit, Fits, due_after, is_idle_leap, is_start_better
from linkwise.active.hypotheses import (
    WRONG,
    Beliefs,
    Clustering,
    Hypotheses,
    rand_indices,
    share_moved,
)
from linkwise.active.model import Model
from linkwise.active.numbers import merged, with_two_merged
from linkwise.active.packed import packed, unpacked
from linkwise.active.state import State
from linkwise.auto.report import Committee

X, y = make_blobs(60, centers=4, cluster_std=2.5, random_state=1)
truth = TruthOracle(y)
# Four corners, opposite ones belong together.
corner = np.repeat(np.arange(4), 15)
SQUARE = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])[corner] + 0.05 * np.random.RandomState(
    0
).uniform(-1, 1, (60, 2))


def hypotheses_of(partitions, weights=None, coordinates=None):
    """Return partitions of samples that have no neighbours but themselves."""
    labels = np.array(partitions)
    n = labels.shape[1]
    weights = np.ones(len(labels)) / len(labels) if weights is None else np.array(weights)
    shown = Clustering(labels[-1], np.eye(int(labels[-1].max()) + 1)[labels[-1]])
    Z = np.arange(2.0 * n).reshape(n, 2) if coordinates is None else coordinates
    return Hypotheses(np.arange(n), labels, weights, np.eye(n), Z, shown)


def beliefs_of(*partitions, weights=None):
    hypotheses = hypotheses_of(partitions, weights)
    return Beliefs(hypotheses, (), hypotheses.weights)


# What an answer is worth -------------------------------------------------------------------


def test_the_value_of_a_question_is_the_expected_drop_of_disagreement():
    rng = np.random.RandomState(0)
    said, weights = rng.uniform(0.05, 0.95, (3, 7)), np.array([0.5, 0.3, 0.2])
    D = rng.uniform(size=(3, 3))
    D = D + D.T
    for at, value in enumerate(telling_apart(said, weights, D)):
        drop = weights @ D @ weights
        for like in (said[:, at], 1 - said[:, at]):
            after = weights * like / (weights @ like)
            drop -= (weights @ like) * (after @ D @ after)
        assert value == pytest.approx(drop)


def test_partitions_with_different_numbers_of_clusters_are_compared():
    rng = np.random.RandomState(0)
    labels = np.array([rng.randint(k, size=50) for k in (2, 3, 7)] + [np.zeros(50, int)])
    expected = [[adjusted_rand_score(a, b) for a in labels] for b in labels]
    assert_allclose(rand_indices(labels), expected, atol=1e-12)


def test_clusters_are_matched_before_samples_count_as_moved():
    assert share_moved(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0])) == 0
    assert share_moved(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 1])) == 0.25


def test_the_first_question_tells_two_partitions_apart():
    by_halves, by_turns = np.repeat([0, 1], 6), np.tile([0, 1], 6)
    beliefs = beliefs_of(by_halves, by_turns)
    asked = questions(beliefs)
    i, j = asked.pairs[asked.value.argmax()]
    assert (by_halves[i] == by_halves[j]) != (by_turns[i] == by_turns[j])


def test_an_odd_sample_that_is_asked_about_often_counts_once():
    # Sample 0 is odd: the first partition is right about all others.
    right, wrong = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 1, 0, 1, 0, 1, 0, 1])
    beliefs = beliefs_of(right, wrong, right)
    answers = [Answer(0, j, "different") for j in (1, 2, 3)]
    after = beliefs.after_all(answers)
    alone = [beliefs.after(one).weights[0] / beliefs.weights[0] for one in answers]
    assert after.weights[0] / beliefs.weights[0] > 3 * np.prod(alone)
    assert after.log_likelihood == pytest.approx(
        sum(np.log(one) for one in _sequential(beliefs, answers))
    )


def _sequential(beliefs, answers):
    """Yield the probability of each answer given those before."""
    for one in answers:
        together = np.array([a @ b for a, b in beliefs.probability(np.array([one.i, one.j]))])
        said = together if one.answer == "same" else 1 - together
        yield beliefs.weights @ (WRONG + (1 - 2 * WRONG) * said)
        beliefs = beliefs.after(one)


def test_only_the_last_answer_about_a_pair_is_heard_and_unknown_says_nothing():
    half = np.repeat([0, 1], 4)
    beliefs = beliefs_of(half, np.tile([0, 1], 4))
    same = beliefs.after(Answer(0, 4, "same"))
    assert_array_equal(beliefs.after(Answer(0, 4, "unknown")).weights, beliefs.weights)
    turned = same.after(Answer(0, 4, "different"))
    once = beliefs.after(Answer(0, 4, "different"))
    assert_allclose(turned.probability(np.arange(8)), once.probability(np.arange(8)))


def test_kinds_of_answers_are_balanced():
    beliefs = beliefs_of(np.repeat([0, 1], 6), np.tile([0, 1], 6))
    likely = np.array([0.2, 0.8])
    assert_allclose(balance(beliefs, likely), 1)
    bored = beliefs.after_all([Answer(0, j, "different") for j in range(6, 10)])
    low, high = balance(bored, likely)
    assert low < 1 < high


def test_questions_of_a_batch_are_about_different_things():
    rng = np.random.RandomState(0)
    parts = [
        np.where(rng.uniform(size=24) < 0.2, 1 - half, half) for half in [np.repeat([0, 1], 12)] * 6
    ]
    beliefs = beliefs_of(*parts)
    state = State(Prepared(np.arange(24.0)[:, None]), 2, Constraints(24), believe=lambda: beliefs)
    found = propose(state, 4)
    samples = [sample for one in found for sample in (one.i, one.j)]
    assert len(found) == 4
    assert len(set(samples)) == 8
    assert all(0 < one.probability < 1 for one in found)


# The session -------------------------------------------------------------------------------


def counted_fits(monkeypatch):
    fits = []
    fit = Model.fitted

    def spied(self, constraints, n_clusters=None):
        fits.append(constraints.n_pairs)
        return fit(self, constraints, n_clusters)

    monkeypatch.setattr(Model, "fitted", spied)
    return fits


def test_auto_clusters_and_its_candidates_are_asked_about_by_default():
    session = Session(X, 4, random_state=0)
    assert "strategy='committee', method='auto'" in repr(session)
    before = adjusted_rand_score(y, session.labels)
    simulate(session, truth, 25, every=25)
    assert adjusted_rand_score(y, session.labels) >= before
    assert session.constraints.n_violated(session.labels) == 0
    assert len(session.suspects) == 25


def test_fits_are_due_after_five_answers_and_later_after_twenty_five(monkeypatch):
    assert [due_after(n) for n in (0, 4, 5, 24, 25, 49, 51)] == [0, 0, 5, 20, 25, 25, 50]
    fits = counted_fits(monkeypatch)
    session = Session(X, 4, random_state=0)
    for number in range(7):
        i, j = session.next()
        session.answer(i, j, truth(i, j))
        assert session.provisional[i] == session.provisional[j] or y[i] != y[j]
        assert 0 <= session.still_to_change <= 1
        assert session.refit_is_due == (number == 4)
    assert fits == [0, 5]
    assert session.n_clustered == 5
    assert_array_equal(session.refit(), session.labels)
    assert session.n_clustered == 7
    assert_array_equal(session.provisional, session.labels)
    assert fits == [0, 5, 7]


def test_questions_go_on_while_another_thread_clusters(monkeypatch):
    session = Session(X, 4, random_state=0)
    for one in session.proposals(3):
        session.answer(one.i, one.j, truth(one.i, one.j))
    may_go_on, fit = threading.Event(), Fits._fit

    def waiting(self, answers):
        assert may_go_on.wait(30)
        return fit(self, answers)

    monkeypatch.setattr(Fits, "_fit", waiting)
    thread = threading.Thread(target=session.refit)
    thread.start()
    try:
        for one in session.proposals(3):
            session.answer(one.i, one.j, truth(one.i, one.j))
        assert session.provisional.shape == (60,)
        assert session.n_clustered == 0
        session.undo()
    finally:
        may_go_on.set()
        thread.join()
    assert session.n_clustered == 3
    assert len(session.answers) == 5


def test_undo_leads_back_to_the_same_question_and_clustering():
    session = Session(X, 4, random_state=0)
    simulate(session, truth, 6, every=6)
    before = session.next(), session.provisional.tolist(), session.still_to_change
    session.answer(*before[0], truth(*before[0]))
    session.next()
    session.undo()
    assert (session.next(), session.provisional.tolist(), session.still_to_change) == before


def test_a_resumed_session_finds_no_old_clustering_again(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    session = Session(X, 4, random_state=0, path=path)
    for _ in range(13):
        i, j = session.next()
        stability = session.stability
        session.answer(i, j, truth(i, j))
    fits = counted_fits(monkeypatch)
    again = Session.load(path, X)
    assert again.next() == session.next()
    assert again.stability == session.stability
    assert sorted(fits) == [0, 10]
    assert np.isfinite(stability)
    assert_array_equal(again.labels, session.labels)


def test_a_file_without_labels_is_read_as_before(tmp_path):
    path, old = tmp_path / "kept", tmp_path / "old"
    session = Session(X, 4, random_state=0, path=path)
    for _ in range(6):
        i, j = session.next()
        assert session.stability != 0
        session.answer(i, j, truth(i, j))
    assert all("labels" in json.loads(line) for line in path.read_text().splitlines()[2:])
    session.save(old)
    assert not any("labels" in json.loads(line) for line in old.read_text().splitlines())
    again = Session.load(old, X)
    assert again.stability == session.stability
    assert again.next() == session.next()


def test_labels_are_packed_and_unpacked():
    rng = np.random.RandomState(0)
    before, after = rng.randint(300, size=(2, 1_000))
    assert_array_equal(unpacked(packed(before)), before)
    assert_array_equal(unpacked(packed(after, before), before), after)
    assert len(packed(before, before)) < 60


def test_progress_of_a_clustering_is_told():
    heard = []
    session = Session(X, 4, random_state=0, callback=lambda share, what: heard.append(share))
    assert session.next() is not None
    assert heard
    assert heard[-1] == pytest.approx(1)


# An earlier clustering stays ---------------------------------------------------------------


def test_the_start_stays_until_a_candidate_predicts_answers_better():
    none = np.empty((2, 0), int)
    names = ("without constraints", "learner")
    close, better = np.array([-3.0, -2.0]), np.array([-3.0, -1.0])
    made = [Committee(names, none, none, np.ones(2), one, none) for one in (close, better)]
    assert [is_start_better(one) for one in made] == [True, False]
    assert not is_start_better(made[0]._replace(evidence=None))


def test_a_leap_needs_answers_that_it_explains():
    before, now = np.tile([0, 1], 10), np.repeat([0, 1], 10)
    hypotheses = hypotheses_of([before, now])
    idle = [Answer(0, 1, "different"), Answer(0, 2, "same")]
    assert is_idle_leap(hypotheses, before, idle)
    telling = [Answer(0, 1, "same"), Answer(2, 3, "same"), Answer(0, 18, "different")]
    assert not is_idle_leap(hypotheses, before, telling)
    assert not is_idle_leap(hypotheses, now, idle)  # nothing moves


def test_the_more_samples_move_the_more_the_answers_have_to_gain():
    now = np.repeat([0, 1], 50)

    def is_idle(n_moved, gain):
        before = now.copy()
        before[:n_moved] = 1
        explained = SimpleNamespace(
            clustering=SimpleNamespace(labels=now),
            explanation=lambda labels, _: gain if labels is now else 0.0,
        )
        return is_idle_leap(explained, before, ())

    assert [is_idle(5, gain) for gain in (GATE / 2 - 0.01, GATE / 2 + 0.01)] == [True, False]
    assert [is_idle(30, gain) for gain in (GATE - 0.01, GATE + 0.01)] == [True, False]


# What candidates say together ---------------------------------------------------------------


def candidates_of(partitions, weights):
    labels = np.array(partitions)
    names = tuple(map(str, range(len(labels))))
    return Committee(names, np.arange(labels.shape[1]), labels, np.array(weights), None, SQUARE)


def test_a_candidate_that_predicts_chosen_pairs_best_does_not_decide_alone():
    others = np.repeat([0, 1], 30)
    ahead = np.where(np.arange(60) < 10, 1, others)  # ten samples elsewhere
    committee = candidates_of([ahead, others, others, others], [0.94, 0.02, 0.02, 0.02])
    found = np.eye(2)[ahead]
    assert_array_equal(agreed(committee, found, 10).argmax(axis=1), others)
    assert_array_equal(agreed(committee, 1 - found, 10).argmax(axis=1), 1 - others)  # numbered so


def test_candidates_are_averaged_again_only_where_weights_are_by_likelihood():
    committee = candidates_of([np.repeat([0, 1], 30)], [1.0])
    found = np.eye(2)[committee.labels[0]]
    made = [agreed(committee, found, n) is not None for n in (8, 9, 29, 30)]
    assert made == [False, True, True, False]
    part = committee._replace(samples=np.arange(50), labels=committee.labels[:, :50])
    assert agreed(part, found, 10) is None


def test_labels_satisfy_every_answer_whatever_the_candidates_say():
    session = Session(X, 4, random_state=0)
    said = TruthOracle(np.random.RandomState(0).permutation(y))
    for _ in range(20):
        pair = session.next()
        session.answer(*pair, said(*pair))
    for i, j, answer, *_ in session.answers:
        assert (session.labels[i] == session.labels[j]) == (answer == "same")


# Doubts -----------------------------------------------------------------------------------


def cornered(shown):
    """Return the corners of the square, grouped by candidates that all agree."""
    return hypotheses_of([shown, shown], coordinates=SQUARE)


def test_a_part_that_no_answer_has_placed_is_doubted():
    shown = np.isin(corner, [0, 1, 2]).astype(int)  # opposite corners belong together
    found = doubts(cornered(shown), ())
    moved = [np.flatnonzero(one.labels != shown) for one in found]
    assert {tuple(np.unique(corner[one])) for one in moved} >= {(0,), (1,), (2,)}
    assert sum(one.weight for one in found) == pytest.approx(DOUBT)


def test_doubts_end_with_answers_that_place_the_part():
    shown = np.isin(corner, [0, 1, 2]).astype(int)

    def doubt_about(place, answers):
        found = doubts(cornered(shown), answers)
        return sum(one.weight for one in found if one.labels[place] != shown[place])

    joined = [Answer(0, 16, "same"), Answer(1, 31, "same")]  # the corner of 0 with two others
    assert doubt_about(5, joined) < 0.5 * doubt_about(5, ())
    parted = [Answer(16, 0, "different"), Answer(17, 31, "different")]
    assert doubt_about(20, parted) > 0.9 * doubt_about(20, ())


def test_doubts_are_asked_about_and_nothing_else():
    shown = np.isin(corner, [0, 1, 2]).astype(int)
    hypotheses = cornered(shown)
    doubted = hypotheses.doubted(doubts(hypotheses, ()))
    sure, unsure = (Beliefs(one, (), one.weights) for one in (hypotheses, doubted))
    assert unsure.still_to_change == sure.still_to_change == 0
    assert_array_equal(unsure.labels, sure.labels)
    i, j = questions(unsure).pairs[questions(unsure).value.argmax()]
    assert corner[i] != corner[j]


def test_corners_are_joined_although_all_candidates_agree():
    # After ten answers all candidates have three corners in one cluster.
    rng = np.random.RandomState(9)
    at = rng.randint(4, size=200)
    near = rng.uniform(-0.3, 0.3, size=(200, 2))
    four = np.array([(0, 0), (1, 0), (1, 1), (0, 1)])[at] + near
    session = Session(StandardScaler().fit_transform(four), 2, random_state=9)
    curve = simulate(session, TruthOracle(at % 2), 15, every=15)
    assert curve.ari(at % 2)[-1] == 1


# The number of clusters unknown ------------------------------------------------------------


def test_answers_reveal_the_number_of_clusters():
    session = Session(SQUARE, "auto", random_state=0)
    assert session.n_clusters_now == 4
    simulate(session, TruthOracle(corner % 2), 12, every=12)
    assert session.n_clusters_now == 2
    assert adjusted_rand_score(corner % 2, session.labels) == 1


def test_a_session_of_unknown_number_is_resumed(tmp_path):
    path = tmp_path / "kept"
    session = Session(SQUARE, "auto", random_state=0, path=path)
    simulate(session, TruthOracle(corner % 2), 6, every=6)
    again = Session.load(path, SQUARE)
    assert again.n_clusters == "auto"
    assert again.next() == session.next()
    with pytest.raises(ValueError, match="n_clusters='auto', not 3"):
        Session(SQUARE, 3, random_state=0, path=path)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"strategy": "xu"}, "strategy 'xu' needs the number"),
        ({"method": "e2cp"}, "method 'e2cp' needs the number"),
    ],
)
def test_what_needs_the_number_of_clusters_says_so(settings, words):
    with pytest.raises(ValueError, match=words):
        Session(X, "auto", **settings)
    with pytest.raises(ValueError, match="not 'many'"):
        Session(X, "many")


def test_clusters_that_answers_join_are_merged_at_a_price():
    beliefs = beliefs_of(corner)
    same = [Answer(0, 30, "same"), Answer(15, 45, "same"), Answer(1, 31, "same")]
    apart = [Answer(0, 15, "different")]
    (first, three), (second, two) = merged(beliefs, [*same, *apart])
    assert_array_equal(np.unique(three), np.arange(3))
    assert adjusted_rand_score(two, corner % 2) == 1
    assert (first, second) == pytest.approx((np.log(6), np.log(6) + np.log(3)))
    assert not list(merged(beliefs, apart))


def test_any_two_clusters_may_be_merged_that_no_answer_parts():
    rivals = with_two_merged(hypotheses_of([corner]), [Answer(0, 15, "different")])
    assert len(rivals) == 5
    assert all(np.unique(one.labels).size == 3 for one in rivals)
    assert all(one.labels[0] != one.labels[15] for one in rivals)


def test_more_clusters_contradict_nothing_if_their_number_is_unknown():
    session = Session(X, "auto", random_state=0)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        session.answer(i, j, "different")
    assert not session.constraints.n_conflicts


# The committee of Auto ---------------------------------------------------------------------


def test_the_committee_is_in_the_order_of_the_data():
    known = Constraints.sample(y, 12, random_state=0)
    model = Auto(4, random_state=0).fit(X, constraints=known)
    committee = model.committee_
    assert_array_equal(committee.samples, np.arange(60))
    assert committee.weights.sum() == pytest.approx(1)
    assert committee.labels.shape == (len(committee.names), 60)
    heaviest = committee.labels[committee.weights.argmax()]
    assert adjusted_rand_score(heaviest, model.labels_) > 0.6
    assert committee.evidence.shape == committee.weights.shape
    # Near samples are near each other there, too.
    gaps = np.linalg.norm(committee.coordinates[:, None] - committee.coordinates, axis=2)
    far = np.linalg.norm(X[:, None] - X, axis=2)
    assert np.corrcoef(gaps.ravel(), far.ravel())[0, 1] > 0.9
    assert Auto(4, random_state=0).fit(X).committee_.evidence is None


def test_earlier_fits_give_their_memory_back_and_say_the_same():
    fits = Fits(
        Model("auto", Prepared(X), n_clusters=4, hard=True, seed=0), Constraints(60), noisy=False
    )
    first = fits.after(())
    before = first.hypotheses.probability(np.arange(60))
    fits.after((Answer(0, 1, truth(0, 1)),))
    assert "memberships" not in vars(first.hypotheses)
    assert_array_equal(first.hypotheses.probability(np.arange(60)), before)


# Memory that is given back ------------------------------------------------------------------


def test_what_is_being_worked_out_is_forgotten_as_well(monkeypatch):
    begun, finish = threading.Event(), threading.Event()

    def slow(candidates, answers):
        begun.set()
        assert finish.wait(60)
        assert candidates.memberships
        return []

    monkeypatch.setattr(fits, "doubts", slow)
    candidates = hypotheses_of([[0, 0, 1, 1], [0, 1, 1, 1]])
    fit = Fit((Answer(0, 1, "same"),), (), candidates)
    asking = threading.Thread(target=lambda: fit.hypotheses, daemon=True)
    asking.start()
    assert begun.wait(60)
    forgetting = threading.Thread(target=fit.forget, daemon=True)
    forgetting.start()
    forgetting.join(0.2)
    finish.set()
    for thread in (asking, forgetting):
        thread.join(60)
    assert "memberships" not in candidates.__dict__
    again = pickle.loads(pickle.dumps(fit))  # without the lock
    assert again.answers == fit.answers
    assert_array_equal(again.hypotheses.labels, fit.hypotheses.labels)
