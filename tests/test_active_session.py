"""Sessions: answers, undo, files that survive a crash; simulated answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from linkwise import CSC, Affinity, ConflictError, Constraints, Prepared
from linkwise._files import lock
from linkwise.active import STRATEGIES, NoisyOracle, Session, TruthOracle, simulate
from linkwise.active.answers import Answer
from linkwise.active.journal import Journal, _encoded, fingerprint
from linkwise.methods import ncut

X, y = make_blobs(40, centers=3, cluster_std=3, random_state=0)
truth = TruthOracle(y)


def a_session(data=X, **settings):
    return Session(
        data, 3, **{"strategy": "explore", "method": "e2cp", "random_state": 0, **settings}
    )


# Answers -----------------------------------------------------------------------------------


def test_answers_become_constraints_and_unknown_does_not():
    session = a_session()
    session.answer(3, 1, "same")
    session.answer(2, 5, False)
    session.answer(np.int64(7), 6, None)
    assert session.constraints == Constraints(40, [(1, 3)], [(2, 5)])
    assert [tuple(a) for a in session.answers] == [
        (1, 3, "same"),
        (2, 5, "different"),
        (6, 7, "unknown"),
    ]


def test_every_answer_holds_in_the_clustering():
    session = a_session()
    simulate(session, truth, 25, every=25)
    assert session.constraints.n_violated(session.labels) == 0


def test_a_contradiction_is_refused_with_its_chain_and_not_recorded():
    session = a_session()
    session.answer(0, 1, "same")
    session.answer(1, 2, "same")
    with pytest.raises(ConflictError, match="0 - 1 - 2") as error:
        session.answer(0, 2, "different")
    assert error.value.witness == (0, 1, 2)
    assert len(session.answers) == 2
    session.answer(0, 2, "same")  # what follows anyway may be said


def test_an_answer_that_the_number_of_clusters_excludes_is_refused():
    session = Session(X, 2, method="e2cp", random_state=0)
    session.answer(0, 1, "different")
    session.answer(1, 2, "different")
    with pytest.raises(ConflictError, match="odd ring"):
        session.answer(0, 2, "different")
    small = Session(X[:3], 2, method="e2cp", strategy="uncertainty", random_state=0)
    small.answer(0, 1, "same")
    with pytest.raises(ConflictError, match="only 1 group"):
        small.answer(1, 2, "same")
    assert small.next() is None


def test_the_last_answer_about_a_pair_counts():
    session = a_session()
    session.answer(0, 1, "unknown")
    session.answer(0, 1, "different")
    assert session.constraints == Constraints(40, cannot_link=[(0, 1)])
    session.answer(0, 1, "unknown")
    assert session.constraints.is_empty
    noisy = a_session(noisy=True)
    noisy.answer(0, 1, "same")
    noisy.answer(0, 1, "different")
    assert noisy.constraints.n_pairs == 1


def test_noisy_answers_may_contradict_each_other():
    session = a_session(noisy=True)
    for i, j, said in ((0, 1, True), (1, 2, True), (0, 2, False)):
        session.answer(i, j, said)
    assert session.constraints.n_pairs == 3
    assert session.constraints.n_conflicts == 0
    assert session.labels.size == 40


@pytest.mark.parametrize(
    ("i", "j", "answer", "error", "words"),
    [
        (0, 0, "same", ValueError, "itself"),
        (0, 40, "same", IndexError, "no sample 40"),
        (-1, 3, "same", IndexError, "no sample -1"),
        (0.0, 3, "same", TypeError, "integer"),
        (True, 3, "same", TypeError, "integer"),
        (0, 1, "maybe", ValueError, "'maybe'"),
    ],
)
def test_a_wrong_answer_is_explained(i, j, answer, error, words):
    with pytest.raises(error, match=words):
        a_session().answer(i, j, answer)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"strategy": "clever"}, "choose of committee, random, xu"),
        ({"method": "magic"}, "choose of auto, ncut"),
        ({"affinity": "rbf"}, "not 'rbf'"),
        ({"constraints": Constraints(3)}, "about 3 samples"),
    ],
)
def test_wrong_settings_are_explained(settings, words):
    with pytest.raises(ValueError, match=words):
        a_session(**settings)


def test_too_many_clusters_and_a_graph_for_a_method_that_needs_data():
    with pytest.raises(ValueError, match="more than the 40 samples"):
        Session(X, 41)
    with pytest.raises(ValueError, match="needs data"):
        Session(Affinity().fit_transform(X), 3, affinity="precomputed", method="cpca")


def test_estimators_and_methods_of_all_kinds_cluster():
    for method in ("cut", "cpca", "ncut", CSC(hard=True, rows="raw")):
        session = a_session(method=method)
        assert np.unique(session.labels).size == 3
    assert isinstance(session._model.estimator, CSC)
    assert session._model.estimator.get_params()["n_clusters"] == 3
    assert session._model.estimator.rows == "raw"


def test_what_was_known_before_counts():
    known = Constraints(40, labels=np.where(np.arange(40) < 20, y, -1))
    session = a_session(constraints=known)
    while (pair := session.next()) is not None:
        assert max(pair) >= 20
        session.answer(*pair, truth(*pair))
    assert adjusted_rand_score(y, session.labels) == 1


def test_a_guess_known_before_gives_way_to_an_answer():
    guess = Constraints(40, must_link=[(0, 1)], must_link_belief=[0.5])
    session = a_session(constraints=guess)
    assert session.constraints == guess
    assert session.state.is_open(0, 1)
    session.answer(0, 1, "unknown")
    assert session.constraints == guess
    session.answer(1, 0, "different")
    assert session.constraints == Constraints(40, cannot_link=[(0, 1)])
    assert session.labels[0] != session.labels[1]
    session.undo()
    assert session.constraints == guess
    certain = a_session(constraints=Constraints(40, must_link=[(0, 1)]))
    with pytest.raises(ConflictError, match="'different'"):
        certain.answer(0, 1, "different")


def test_a_guess_excludes_nothing_that_takes_several_answers_to_see():
    guess = Constraints(40, [(0, 1)], [(2, 3)], must_link_belief=0.9, cannot_link_belief=0.9)
    session = a_session(constraints=guess)
    for i, j, said in ((0, 4, "same"), (1, 4, "different"), (2, 5, "same"), (3, 5, "same")):
        session.answer(i, j, said)
    assert session.constraints.n_pairs == 6
    # What the answers decide is no evidence any more.
    assert (session.state.evidence.must_link_belief == 1).all()
    assert (session.state.evidence.cannot_link_belief == 1).all()
    assert session.labels[2] == session.labels[3] == session.labels[5]
    assert session.labels[0] == session.labels[4] != session.labels[1]


def test_an_own_strategy_is_a_function():
    def in_order(state, n_queries, rng):
        pairs = [p for p in combinations(range(state.n_samples), 2) if state.is_open(*p)]
        return np.array(pairs[:n_queries]).reshape(-1, 2)

    session = a_session(strategy=in_order)
    assert session.next() == (0, 1)
    assert "in_order" in repr(session)


# The same again ----------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_seed_and_answers_give_the_same_questions(strategy, tmp_path):
    first = a_session(strategy=strategy)
    simulate(first, truth, 7, every=7)
    second = a_session(strategy=strategy, path=tmp_path / "kept")
    simulate(second, truth, 4, every=4)
    resumed = Session.load(tmp_path / "kept", X)  # a new process would do the same
    simulate(resumed, truth, 3, every=3)
    assert first.answers == resumed.answers
    assert first.next() == resumed.next()
    assert_array_equal(first.labels, resumed.labels)


@pytest.mark.parametrize("method", ["e2cp", "csc"])
def test_warm_starts_change_no_question(method, tmp_path):
    points, labels = make_blobs(300, centers=6, cluster_std=3, random_state=0)
    answer = TruthOracle(labels % 3)
    settings = {"method": method, "strategy": "uncertainty", "random_state": 0}
    warm = Session(points, 3, path=tmp_path / "kept", **settings)
    for _ in range(12):
        pair = warm.next()
        resumed = Session.load(tmp_path / "kept", points)  # solves cold
        assert resumed.next() == pair
        assert_array_equal(resumed.labels, warm.labels)
        warm.answer(*pair, answer(*pair))


def test_every_solve_after_the_first_starts_warm(monkeypatch):
    starts = []
    solve = ncut.spectral_embedding

    def spied(*arguments, warm, **settings):
        starts.append(warm.vectors)
        return solve(*arguments, warm=warm, **settings)

    monkeypatch.setattr(ncut, "spectral_embedding", spied)
    session = Session(X, 3, strategy="uncertainty", method="csc", random_state=0)
    simulate(session, truth, 6)
    assert starts[0] is None
    assert len(starts) == 7
    assert all(vectors is not None for vectors in starts[1:])


def test_a_session_works_on_prepared_data_and_leaves_their_warm_starts_alone():
    data = Prepared(X, Affinity(7))
    session = a_session(data=data)
    assert session.W is data.W
    simulate(session, truth, 3)
    assert data.warm.adjacency.vectors is None
    with pytest.raises(ValueError, match="prepared with"):
        Session(data, 3, affinity=Affinity(5))
    assert simulate(a_session(affinity=Affinity(7)), truth, 3).answers == session.answers


def test_another_seed_asks_other_questions():
    asked = {a_session(strategy="random", random_state=seed).next() for seed in range(5)}
    assert len(asked) > 1


pairs_of_samples = st.sampled_from(list(combinations(range(12), 2)))
steps = st.lists(st.one_of(st.just("undo"), st.tuples(pairs_of_samples, st.booleans())), max_size=8)


@given(steps, st.integers(0, 4))
@settings(max_examples=12)
def test_undo_restores_everything(history, extra):
    session = Session(X[:12], 3, strategy="explore", method="e2cp", random_state=0)
    for step in history:
        if step == "undo":
            if session.answers:
                session.undo()
        else:
            (i, j), is_told = step
            session.answer(i, j, truth(i, j) if is_told else None)
    before = (list(session.answers), session.constraints, session.next(), session.labels.tolist())
    n_added = simulate(session, TruthOracle(y[:12]), extra).n_questions[-1]
    for _ in range(n_added):
        session.undo()
    after = (list(session.answers), session.constraints, session.next(), session.labels.tolist())
    assert before == after


def test_nothing_to_undo():
    with pytest.raises(ValueError, match="no answer to take back"):
        a_session().undo()


def test_other_answers_after_undo_give_other_labels():
    session = a_session()
    simulate(session, truth, 6)
    last = session.undo()
    session.answer(last.i, last.j, "unknown")
    fresh = a_session()
    for answer in session.answers:
        fresh.answer(*answer)
    assert_array_equal(session.labels, fresh.labels)


# Stability ---------------------------------------------------------------------------------


def test_stability_compares_with_the_clusterings_before_the_last_five_answers():
    session = a_session(strategy="random")
    assert np.isnan(session.stability)
    curve = simulate(session, truth, 9)
    expected = [adjusted_rand_score(curve.labels[n], curve.labels[9]) for n in range(4, 9)]
    assert session.stability == pytest.approx(np.mean(expected))
    # It does not depend on when labels were looked at.
    fresh = a_session(strategy="random")
    for answer in session.answers:
        fresh.answer(*answer)
    assert fresh.stability == session.stability


# Files -------------------------------------------------------------------------------------


@given(steps)
@settings(max_examples=10)
def test_a_saved_session_is_loaded_as_it_was(tmp_path_factory, history):
    folder = tmp_path_factory.mktemp("kept")
    session = Session(
        X[:12], 3, strategy="explore", method="e2cp", random_state=5, path=folder / "journal"
    )
    for step in history:
        if step == "undo":
            if session.answers:
                session.undo()
        else:
            (i, j), is_told = step
            session.answer(i, j, truth(i, j) if is_told else None)
    session.save(folder / "copy")
    for name in ("journal", "copy"):
        again = Session.load(folder / name, X[:12])
        assert again.answers == session.answers
        assert again.constraints == session.constraints
        assert again.next() == session.next()


SCRIPT = """
import os, signal, sys
from sklearn.datasets import make_blobs
from linkwise.active import Session, TruthOracle, simulate
X, y = make_blobs(40, centers=3, cluster_std=3, random_state=0)
session = Session(X, 3, strategy="explore", method="e2cp", random_state=0, path=sys.argv[1])
simulate(session, TruthOracle(y), 5, every=5)
session.undo()
print(session.answers, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
def test_answers_survive_being_killed(tmp_path):
    path = tmp_path / "kept.jsonl"
    run = [sys.executable, "-c", SCRIPT, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL
    session = a_session(path=path)
    assert repr(session.answers) == done.stdout.strip()
    assert len(session.answers) == 4
    # It dies again in the middle of a write.
    with path.open("ab") as file:
        file.write(b'{"i": 3, "j": 1')
    resumed = a_session(path=path)
    assert resumed.answers == session.answers
    resumed.answer(0, 1, None)
    assert a_session(path=path).answers == resumed.answers


def test_an_answer_is_on_the_disk_before_it_counts(tmp_path, monkeypatch):
    session = a_session(path=tmp_path / "kept")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        session.answer(0, 1, "same")
    assert session.answers == []


# It leaves room for half a line, and takes the limit away again.
FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from sklearn.datasets import make_blobs
from linkwise.active import Session
X, y = make_blobs(40, centers=3, cluster_std=3, random_state=0)
path = Path(sys.argv[1])
session = Session(X, 3, strategy="explore", method="e2cp", random_state=0, path=path)
session.answer(0, 1, "unknown")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
before = path.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10, resource.RLIM_INFINITY))
for call in (lambda: session.answer(2, 3, "same"), session.undo):
    try:
        call()
    except OSError as error:
        print(error.strerror, path.read_bytes() == before, len(session.answers))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
session.answer(4, 5, "same")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits there")
def test_a_write_that_fails_half_way_leaves_the_session_whole(tmp_path):
    path = tmp_path / "kept"
    run = [sys.executable, "-c", FULL_DISK, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == "File too large True 1\n" * 2
    assert a_session(path=path).answers == [(0, 1, "unknown"), (4, 5, "same")]


def test_an_interrupted_write_leaves_the_session_whole(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    session = a_session(path=path)
    before = path.read_bytes()

    def interrupted(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.answer(0, 1, "same")
    assert path.read_bytes() == before
    session.answer(0, 1, "different")
    assert a_session(path=path).answers == session.answers == [(0, 1, "different")]


def test_of_two_sessions_on_one_file_the_later_one_is_refused(tmp_path):
    path = tmp_path / "kept"
    first, second = a_session(path=path), a_session(path=path)
    first.answer(0, 1, "same")
    kept = path.read_bytes()
    for call in (lambda: second.answer(0, 1, "different"), lambda: second.answer(2, 3, "same")):
        with pytest.raises(RuntimeError, match=r"Another session wrote to .*kept"):
            call()
    assert second.answers == []
    assert path.read_bytes() == kept
    first.answer(2, 3, "same")
    again = Session.load(path, X)
    again.answer(4, 5, "same")
    assert again.answers == [(0, 1, "same"), (2, 3, "same"), (4, 5, "same")]
    with pytest.raises(RuntimeError, match="Another session wrote"):
        first.undo()
    assert len(first.answers) == 2


def test_sessions_that_begin_a_file_at_the_same_moment_are_told_apart(tmp_path):
    path = tmp_path / "kept"
    first = a_session(path=path, random_state=1)
    path.unlink()
    a_session(path=path, random_state=2)  # as long as the other one
    with pytest.raises(RuntimeError, match="Another session wrote"):
        first.answer(0, 1, "same")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        first.answer(0, 1, "same")
    assert not path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks there")
def test_a_file_is_left_alone_while_somebody_writes(tmp_path):
    path = tmp_path / "kept"
    session = a_session(path=path)
    with path.open("ab") as file:
        lock(file, path)
        with pytest.raises(RuntimeError, match="Another run is writing"):
            session.answer(0, 1, "same")
        line = _encoded([{"i": 0, "j": 1, "answer": "same"}], Journal(path).mark)[0]
        file.write(line[:12])
        file.flush()
        with pytest.raises(RuntimeError, match="Another run is writing"):
            a_session(path=path)  # the torn line is not cut off: its end may come
        file.write(line[12:])
    assert a_session(path=path).answers == [(0, 1, "same")]
    assert session.answers == []


def test_a_session_is_saved_whole_or_not_at_all(tmp_path, monkeypatch):
    session = a_session()
    session.save(tmp_path / "kept")
    before = (tmp_path / "kept").read_bytes()
    session.answer(0, 1, "same")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: os.read(-1, 1))  # an OSError
        with pytest.raises(OSError, match="kept"):
            session.save(tmp_path / "kept")
    assert (tmp_path / "kept").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    session.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert Session.load(tmp_path / "kept", X).answers == session.answers


def test_undo_is_an_appended_record(tmp_path):
    session = a_session(path=tmp_path / "kept")
    session.answer(0, 1, "same")
    session.undo()
    lines = (tmp_path / "kept").read_text().splitlines()
    records = [json.loads(line) for line in lines[1:]]
    assert records[0] == {"i": 0, "j": 1, "answer": "same", "check": records[0]["check"]}
    assert records[1] == {"undo": True, "check": records[1]["check"]}


def test_other_data_or_settings_are_refused(tmp_path):
    path = tmp_path / "kept"
    a_session(path=path).answer(0, 1, "same")
    with pytest.raises(ValueError, match="about other data"):
        Session(X + 1e-9, 3, strategy="explore", path=path)
    with pytest.raises(ValueError, match="about other data"):
        Session(X[:30], 3, strategy="explore", path=path)
    for wrong in ({"strategy": "xu"}, {"random_state": 1}, {"noisy": True}, {"method": "csc"}):
        with pytest.raises(ValueError, match="was begun with"):
            a_session(path=path, **wrong)
    with pytest.raises(ValueError, match="n_clusters=3, not 4"):
        Session(X, 4, strategy="explore", random_state=0, path=path)
    # Without a seed of its own a session takes the one of the file.
    assert a_session(path=path, random_state=None).answers == [(0, 1, "same")]


@pytest.mark.parametrize("content", ["not a session\n", '{"a": 1}', '{"a": 1}\n', "[1]\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "kept"
    path.write_text(content)
    with pytest.raises(ValueError, match="session"):
        a_session(path=path)
    assert path.read_text() == content


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "kept"
    session = a_session(path=path)
    session.answer(0, 1, "same")
    session.answer(1, 2, "same")
    path.write_text(path.read_text().replace('{"i": 0', "{i: 0"))
    with pytest.raises(ValueError, match="Line 2"):
        a_session(path=path)


@pytest.mark.parametrize(
    "line", ['{"i": 0}', '{"i": 0, "j": 99, "answer": "same"}', '{"undo": true}']
)
def test_a_record_that_is_no_answer_is_named(tmp_path, line):
    path = tmp_path / "kept"
    a_session(path=path)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(ValueError, match="Line 2"):
        a_session(path=path)


def test_there_is_nothing_to_load(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no session"):
        Session.load(tmp_path / "missing", X)


def test_fingerprints_see_values_and_shape():
    W = Affinity().fit_transform(X)
    prints = [X, X[:, ::-1], X.reshape(-1, 1), W, 2 * W, W.toarray()]
    assert len({fingerprint(data) for data in prints}) == 6
    assert fingerprint(W) == fingerprint(W.tocoo())
    assert fingerprint(np.asfortranarray(X)) == fingerprint(X)


# Simulated answers -------------------------------------------------------------------------


def test_a_curve_tells_what_happened():
    curve = simulate(a_session(), truth, 7, every=3)
    assert curve.n_questions.tolist() == [0, 3, 6, 7]
    assert curve.labels.shape == (4, 40)
    assert len(curve.answers) == 7
    assert curve.first(y, -1) == 0
    assert curve.first(y, 1.1) is None


def test_a_session_ends_when_nothing_is_left_to_ask():
    session = Session(X[:15], 3, strategy="random", method="e2cp", random_state=0)
    curve = simulate(session, TruthOracle(y[:15]), 1_000, every=1_000)
    assert curve.n_questions[-1] < 15 * 14 / 2
    assert curve.ari(y[:15])[-1] == 1


def test_any_callable_is_an_oracle():
    curve = simulate(a_session(), lambda i, j: None, 5, every=5)
    assert {a.answer for a in curve.answers} == {"unknown"}


def test_a_noisy_oracle_keeps_its_rates_and_its_word():
    labels = np.arange(200) % 2
    oracle = NoisyOracle(labels, flip=0.2, unknown=0.1, random_state=0)
    perfect = TruthOracle(labels)
    pairs = list(combinations(range(200), 2))[:4000]
    said = [oracle(i, j) for i, j in pairs]
    assert said == [oracle(j, i) for i, j in pairs]
    told = [(a, perfect(i, j)) for a, (i, j) in zip(said, pairs, strict=True) if a != "unknown"]
    # Binomial deviations are 0.005 and 0.007.
    assert abs(1 - len(told) / 4000 - 0.1) < 0.02
    assert abs(np.mean([a != t for a, t in told]) - 0.2) < 0.028


@pytest.mark.parametrize(
    "labels",
    [
        [0, 0, 1, -1],
        [0, 0, 1, None],
        [0.0, 0.0, 1.0, float("nan")],
        np.array([0.0, 0.0, 1.0, np.nan]),
        ["a", "a", "b", None],
        ["a", "a", "b", float("nan")],
        np.array(["a", "a", "b", np.nan], dtype=object),
    ],
)
@pytest.mark.parametrize("kind", [TruthOracle, lambda labels: NoisyOracle(labels, flip=0)])
def test_the_truth_knows_nothing_about_samples_without_a_label(labels, kind):
    oracle = kind(labels)
    assert [oracle(0, j) for j in (1, 2, 3)] == ["same", "different", "unknown"]
    assert oracle(3, 0) == oracle(3, 3) == "unknown"


def test_missing_values_of_pandas_are_not_known():
    pandas = pytest.importorskip("pandas")
    oracle = TruthOracle(pandas.Series([0, 0, 1, None], dtype="Int64"))
    assert [oracle(0, j) for j in (1, 2, 3)] == ["same", "different", "unknown"]


def test_a_text_is_a_label_whatever_it_says():
    assert TruthOracle(np.array(["nan", "nan", "-1"]))(0, 1) == "same"


@pytest.mark.parametrize("labels", [y[:39], np.append(y, 0)])
def test_true_labels_of_other_samples_are_refused(labels):
    session = a_session()
    with pytest.raises(ValueError, match=r"labels of (39|41) samples, the session is about 40"):
        simulate(session, TruthOracle(labels), 5)
    assert session.answers == []


def test_the_truth_is_asked_about_samples_it_has():
    for pair in ((0, 40), (-1, 3)):
        with pytest.raises(IndexError, match="true labels of 40 samples only"):
            truth(*pair)
    with pytest.raises(ValueError, match="one label per sample"):
        TruthOracle([[0, 1]])


def test_answers_of_another_belief_are_others():
    answer = Answer(0, 1, "same")
    assert answer == (0, 1, "same")
    assert hash(answer) == hash((0, 1, "same"))
    assert Answer(0, 1, "same", 0.2) != answer
    assert Answer(0, 1, "same", 0.2) == Answer(0, 1, "same", 0.2)
    assert answer._replace(belief=0.2) == Answer(0, 1, "same", 0.2)
    assert answer._replace(answer="different") == (0, 1, "different")
