"""Progress, and Ctrl-C at any moment."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from linkwise import Auto, Constraints, Prepared
from linkwise.auto import candidates, ensemble
from linkwise.exceptions import ConvergenceWarning


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def raw():
    """Return data in which two scalings are compared."""
    X, y = load_iris(return_X_y=True)
    return X, y


class Callback:
    """Collects progress; raises when it is called for the `stop`-th time, or always from then."""

    def __init__(self, stop=None, *, again=False):
        self.calls, self.stop, self.again = [], stop, again

    def __call__(self, share, what):
        self.calls.append((share, what))
        n = len(self.calls)
        if self.stop is not None and (n == self.stop or (self.again and n > self.stop)):
            raise KeyboardInterrupt

    @property
    def shares(self):
        return [share for share, _ in self.calls]


@pytest.mark.parametrize("m", [0, 1, 3, 6, 20])
@pytest.mark.parametrize("k", [3, "auto"])
def test_shares_ascend_to_one(raw, m, k, monkeypatch):
    monkeypatch.setattr("linkwise.auto.n_clusters.MOST", 4)
    monkeypatch.setattr(ensemble, "OTHERS", ensemble.OTHERS[:4])
    X, y = raw
    callback = Callback()
    known = Constraints.sample(y, m, random_state=0)
    Auto(k, callback=callback, random_state=0).fit(X, constraints=known)
    shares = callback.shares
    assert min(shares) >= 0.0
    assert (np.diff(shares) >= 0).all()
    assert_allclose(shares[-1], 1.0)
    assert sum(share == 1.0 for share in shares) == 1  # and not before the end
    assert all(isinstance(what, str) and what for _, what in callback.calls)


def test_threads_report_progress_too(iris):
    X, y = iris
    callback = Callback()
    known = Constraints.sample(y, 12, random_state=0)
    Auto(3, callback=callback, n_jobs=2, random_state=0).fit(X, constraints=known)
    assert_allclose(max(callback.shares), 1.0)


@pytest.mark.parametrize("moment", [0.02, 0.1, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("again", [False, True], ids=["once", "always"])
def test_an_interrupt_leaves_the_best_so_far(iris, moment, again):
    X, y = iris
    known = Constraints.sample(y, 12, random_state=0)
    whole = Callback()
    if "n_calls" not in CALLS:
        Auto(3, callback=whole, random_state=0).fit(X, constraints=known)
        CALLS["n_calls"] = len(whole.calls)
    stop = max(2, int(moment * CALLS["n_calls"]))
    callback = Callback(stop, again=again)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = Auto(3, callback=callback, random_state=0).fit(X, constraints=known)
    assert len(callback.calls) == stop
    assert not model.result_.converged
    assert set(model.labels_) == {0, 1, 2}
    assert adjusted_rand_score(y, model.labels_) > 0.5
    assert_allclose(model.result_.probability.sum(axis=1), 1.0)
    assert_array_equal(model.predict(X), model.labels_)
    assert "3 clusters" in str(model.report_)


CALLS: dict[str, int] = {}


def test_before_the_first_candidate_the_first_ones_are_found(iris):
    X, y = iris
    known = Constraints.sample(y, 12, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = Auto(3, callback=Callback(1), random_state=0).fit(X, constraints=known)
    assert {one.name for one in model.report_.candidates} == {"k-means", "spectral"}
    assert adjusted_rand_score(y, model.labels_) > 0.5
    assert model.report_.interrupted


def test_interrupted_again_there_is_no_answer(iris, monkeypatch):
    def interrupt(trial):
        raise KeyboardInterrupt

    first = ensemble.ALONE[0]._replace(find=interrupt)
    monkeypatch.setattr(ensemble, "ALONE", [first, *ensemble.ALONE[1:]])
    with pytest.raises(KeyboardInterrupt):
        Auto(3, random_state=0).fit(iris[0])


def test_interrupted_in_the_second_scaling_the_first_answers(raw):
    X, y = raw
    known = Constraints.sample(y, 6, random_state=0)
    n_first = len(ensemble.ALONE) + 1
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = Auto(3, callback=Callback(n_first + 5), random_state=0).fit(X, constraints=known)
    alone = Auto(3, scaling="given", random_state=0).fit(X)
    assert model.report_.scaling == "as given"
    assert adjusted_rand_score(alone.labels_, model.labels_) > 0.9


@pytest.mark.parametrize("again", [False, True], ids=["once", "always"])
def test_interrupting_the_search_for_a_number_of_clusters(iris, again):
    X, y = iris
    known = Constraints.sample(y, 20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = Auto(callback=Callback(3, again=again), random_state=0).fit(X, constraints=known)
    assert 2 <= model.n_clusters_ <= 4  # those that were looked at
    assert set(model.labels_) == set(range(model.n_clusters_))
    assert not model.result_.converged


def test_after_an_interrupt_prepared_data_give_the_whole_answer(iris):
    X, y = iris
    known = Constraints.sample(y, 12, random_state=0)
    expected = Auto(3, random_state=0).fit(X, constraints=known)
    for stop in (4, 60):
        data = Prepared(X)
        with pytest.warns(ConvergenceWarning):
            Auto(3, callback=Callback(stop), random_state=0).fit(data, constraints=known)
        model = Auto(3, random_state=0).fit(data, constraints=known)
        assert model.result_.converged
        assert_allclose(model.result_.probability, expected.result_.probability, atol=0.05)


def test_an_interrupt_that_hits_a_compiled_function(iris, monkeypatch):
    X, y = iris

    def stops(trial):
        raise SystemError from KeyboardInterrupt()

    broken = [ensemble.OTHERS[0]._replace(find=stops)]
    monkeypatch.setattr(ensemble, "OTHERS", broken)
    known = Constraints.sample(y, 12, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        Auto(3, random_state=0).fit(X, constraints=known)


def test_other_errors_are_no_interrupts(iris, monkeypatch):
    X, y = iris

    def fails(trial):
        raise ZeroDivisionError

    monkeypatch.setattr(ensemble, "OTHERS", [ensemble.OTHERS[0]._replace(find=fails)])
    known = Constraints.sample(y, 12, random_state=0)
    with pytest.raises(ZeroDivisionError):
        Auto(3, random_state=0).fit(X, constraints=known)


def test_an_interrupted_search_for_a_cut_is_an_interrupt(iris, monkeypatch):
    X, y = iris
    found = candidates.hard_labels
    monkeypatch.setattr(candidates, "hard_labels", lambda *a: found(*a)._replace(interrupted=True))
    monkeypatch.setattr(
        ensemble, "OTHERS", [one for one in ensemble.OTHERS if one.name == "constrained cut"]
    )
    known = Constraints.sample(y, 100, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        Auto(3, random_state=0).fit(X, constraints=known)


def test_verbose_prints_progress(iris, capsys):
    Auto(3, verbose=1, random_state=0).fit(iris[0])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("[Auto] 100% ")
    assert "[Auto]   8% k-means" in lines
