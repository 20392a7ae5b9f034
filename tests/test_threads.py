"""Threads: what belongs to the process is as it was, and data can be shared."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier, Thread

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from linkwise import METHODS, Constraints, Prepared
from linkwise._quiet import TRANSIENT, kept_filters, quiet, recorded
from linkwise._threads import controller, kept_limits, one_thread

# Auto makes threads of its own, and a fit of it takes as long as all others together.
KEYS = list(METHODS)
X, y = make_blobs(45, centers=3, random_state=0)
known = Constraints.from_labels(np.where(np.arange(45) < 6, y, -1))


def fitted(key, data=X):
    constraints = known if METHODS[key].takes else None
    return METHODS[key](3, random_state=0).fit(data, constraints=constraints).labels_


def blas_threads():
    pools = controller().lib_controllers
    return [pool.num_threads for pool in pools if pool.user_api == "blas"]


@pytest.fixture
def _hasty():
    """Let Python change threads after every few bytecodes."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def _two_blas_threads():
    with threadpool_limits(2, "blas"):
        yield


def in_threads(*functions):
    with ThreadPoolExecutor(len(functions)) as pool:
        return [future.result() for future in [pool.submit(f) for f in functions]]


# Warning filters ---------------------------------------------------------------------------


def test_a_silence_is_about_its_thread_and_its_categories():
    barrier = Barrier(2, timeout=10)

    def silent():
        with quiet(ConvergenceWarning):
            barrier.wait()
            warnings.warn("not heard", ConvergenceWarning, stacklevel=1)
            with pytest.raises(UserWarning), quiet(DeprecationWarning):
                warnings.warn("heard", UserWarning, stacklevel=1)
            with quiet():
                warnings.warn("not heard", UserWarning, stacklevel=1)
            barrier.wait()

    def loud():
        barrier.wait()
        with pytest.raises(ConvergenceWarning):
            warnings.warn("heard", ConvergenceWarning, stacklevel=1)
        barrier.wait()

    before, content = warnings.filters, list(warnings.filters)
    in_threads(silent, loud)
    assert warnings.filters is before
    assert warnings.filters == content


def crossed(first, second):
    """Enter two contexts in two threads, and leave them in the order in which they were entered."""
    one, two = ExitStack(), ExitStack()
    for stack, context in ((one, first), (two, second)):
        thread = Thread(target=stack.enter_context, args=(context,))
        thread.start()
        thread.join()
    for stack in (one, two):
        thread = Thread(target=stack.close)
        thread.start()
        thread.join()


@pytest.mark.parametrize("how", [kept_filters, lambda: quiet(UserWarning)])
def test_blocks_that_overlap_leave_the_filters_as_they_were(how):
    before, content = warnings.filters, list(warnings.filters)
    crossed(how(), how())
    assert warnings.filters is before
    assert warnings.filters == content


def test_checks_of_scikit_learn_that_overlap_leave_no_filter_behind():
    class Checked(warnings.catch_warnings):
        def __enter__(self):
            super().__enter__()
            warnings.simplefilter("error", np.exceptions.ComplexWarning)

    before, content = warnings.filters, list(warnings.filters)
    with kept_filters():
        check_array(X)
        crossed(Checked(), Checked())
        assert warnings.filters is not before
    assert warnings.filters is before
    assert warnings.filters == content


def test_filters_of_the_user_are_left_alone():
    with warnings.catch_warnings():
        with kept_filters():
            warnings.simplefilter("ignore", UserWarning)
        warnings.warn("not heard", UserWarning, stacklevel=1)
        inner = warnings.catch_warnings()
        with kept_filters():
            inner.__enter__()
            warnings.simplefilter("error", UserWarning)
        with pytest.raises(UserWarning):
            warnings.warn("heard", UserWarning, stacklevel=1)
        inner.__exit__(None, None, None)
        warnings.warn("not heard", UserWarning, stacklevel=1)


def test_a_recording_hears_what_is_not_silenced():
    with kept_filters(), recorded() as caught:
        warnings.warn("heard", UserWarning, stacklevel=1)
        with quiet(ConvergenceWarning):
            warnings.warn("not heard", ConvergenceWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["heard"]


def test_a_filter_of_a_check_that_overlapped_does_not_stay():
    before, content = warnings.filters, list(warnings.filters)
    with kept_filters():
        # As by a check in another thread, whose copy of the filters was put away by a second one.
        warnings.filters.insert(0, TRANSIENT[0])
    assert warnings.filters is before
    assert warnings.filters == content


# Threads of BLAS ---------------------------------------------------------------------------


@pytest.mark.usefixtures("_two_blas_threads")
def test_limits_that_overlap_leave_the_number_of_threads_as_it_was():
    before = blas_threads()
    crossed(one_thread(), one_thread())
    assert blas_threads() == before
    with one_thread():
        assert set(blas_threads()) == {1}
        with kept_limits():
            pass
        assert set(blas_threads()) == {1}
    with kept_limits():  # as k-means of scikit-learn in two threads
        crossed(controller().limit(limits=1), controller().limit(limits=1))
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


# Fits --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_hasty", "_two_blas_threads")
def test_two_threads_that_fit_all_methods_leave_the_process_as_it_was():
    alone = {key: fitted(key) for key in KEYS}
    before, content, threads = warnings.filters, list(warnings.filters), blas_threads()
    found = in_threads(*2 * [lambda: {key: fitted(key) for key in KEYS}])
    assert warnings.filters is before
    assert warnings.filters == content
    assert blas_threads() == threads
    for labels in found:
        for key in KEYS:
            assert_array_equal(labels[key], alone[key], err_msg=key)


@pytest.mark.usefixtures("_hasty")
def test_threads_share_prepared_data():
    alone = {key: fitted(key) for key in KEYS}
    data = Prepared(X)
    orders = [KEYS, KEYS[::-1]]
    for labels in in_threads(
        *(lambda o=order: {k: fitted(k, data) for k in o} for order in orders)
    ):
        for key in KEYS:
            assert_array_equal(labels[key], alone[key], err_msg=key)


FORKED = """
import os, sys
from sklearn.datasets import make_blobs
from linkwise import E2CP, Constraints
X, y = make_blobs(200, centers=3, random_state=0)
known = Constraints(200, [(0, 1)])
first = E2CP(3, random_state=0).fit(X, constraints=known).labels_
child = os.fork()
if child == 0:
    again = E2CP(3, random_state=0).fit(X, constraints=known).labels_
    os._exit(0 if (again == first).all() else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_can_fit_with_one_thread():
    one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    run = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(run, env=os.environ | one, timeout=120, check=False)
    assert done.returncode == 0
