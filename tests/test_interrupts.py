"""Ctrl-C is heard by every method, leaves the process as it was, and is told from other errors."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs

from linkwise import METHODS, Constraints, _threads
from linkwise._interrupts import INTERRUPTS, in_background, raise_if_not_interrupt
from linkwise._quiet import quiet
from linkwise._threads import controller, uninterrupted
from linkwise.exceptions import ConvergenceWarning


def wrapped(cause):
    try:
        try:
            raise cause
        except BaseException as error:
            raise SystemError("a compiled function returned with an exception set") from error
    except SystemError as error:
        return error


def test_interrupts_pass_and_errors_do_not():
    raise_if_not_interrupt(KeyboardInterrupt())
    raise_if_not_interrupt(wrapped(KeyboardInterrupt()))
    raise_if_not_interrupt(wrapped(wrapped(KeyboardInterrupt())))
    assert isinstance(wrapped(KeyboardInterrupt()), INTERRUPTS)
    with pytest.raises(SystemError):
        raise_if_not_interrupt(wrapped(ValueError()))
    with pytest.raises(SystemError):
        raise_if_not_interrupt(wrapped(wrapped(ValueError())))


# Signals -----------------------------------------------------------------------------------

KEYS = list(METHODS)
MOMENTS = (0.15, 0.5, 0.85)  # of the time that a fit takes
X, y = make_blobs(120, centers=4, n_features=5, cluster_std=3, random_state=0)
known = Constraints.from_labels(np.where(np.arange(120) < 12, y, -1))


def fitted(key):
    constraints = known if METHODS[key].takes else None
    return METHODS[key](4, random_state=0).fit(X, constraints=constraints).labels_


def interrupted(call, seconds):
    """Send SIGINT after some seconds; return what the call returned, None after an interrupt."""
    done = threading.Event()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def send():
        if not done.wait(seconds):
            os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=send)
    try:
        sender.start()
        found = call()
        done.set()
        sender.join()
        time.sleep(0)  # a signal that was sent at the end arrives here
    except INTERRUPTS as error:
        raise_if_not_interrupt(error)
        found = None
    finally:
        done.set()
        sender.join()
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.parametrize("key", KEYS)
def test_every_method_hears_an_interrupt_and_can_fit_again(key):
    fitted(key)  # compiles
    start = time.perf_counter()
    expected = fitted(key)
    seconds = time.perf_counter() - start
    filters, content = warnings.filters, list(warnings.filters)
    threads = [pool.num_threads for pool in controller().lib_controllers]
    for moment in MOMENTS:
        with quiet(ConvergenceWarning):  # a search returns the best so far, and says so
            found = interrupted(lambda: fitted(key), moment * seconds)
        assert found is None or np.unique(found).size == 4
        assert warnings.filters is filters
        assert warnings.filters == content
        assert [pool.num_threads for pool in controller().lib_controllers] == threads
    assert_array_equal(fitted(key), expected)


# Another process sends it: a thread of this one would wait for code that never gives way.
SENDER = 'sleep "$1"; cat /proc/"$2"/stat; kill -INT "$2"'
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="CPU times of processes are not in /proc here"
)
many, groups = make_blobs(3000, centers=5, n_features=8, cluster_std=3, random_state=1)
few_labels = Constraints.from_labels(np.where(np.arange(3000) < 40, groups, -1))


def seconds_until_heard(call, after):
    """Return the CPU seconds between SIGINT and the end of a call; below 0 if it had ended."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command = ["sh", "-c", SENDER, "sh", str(after), str(os.getpid())]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sender:
        end = None
        try:
            call()
            end = time.process_time()
            sender.wait(60)
            time.sleep(0.1)  # the signal is on its way
        except INTERRUPTS as error:
            raise_if_not_interrupt(error)
        end = time.process_time() if end is None else end
        stat, _ = sender.communicate()
    user, system = stat.rpartition(")")[2].split()[11:13]
    return end - (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@needs_proc
@pytest.mark.parametrize("key", KEYS)
def test_larger_fits_end_within_a_second(key):
    constraints = few_labels if METHODS[key].takes else None

    def call():
        with quiet(ConvergenceWarning):
            METHODS[key](5, random_state=0).fit(many, constraints=constraints)

    fitted(key)  # compiles
    # Auto makes an answer of what it has: .9 CPU s were seen.
    assert seconds_until_heard(call, 0.3) < (3 if key == "auto" else 1)


@needs_proc
def test_a_call_that_does_not_give_way_is_noticed():
    assert seconds_until_heard(lambda: sum(range(60_000_000)), 0.1) > 0.2


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_a_call_in_the_background_hears_an_interrupt():
    goes_on = threading.Event()
    assert interrupted(lambda: in_background(lambda: goes_on.wait(30)), 0.2) is None
    goes_on.set()
    assert in_background(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        in_background(lambda: 1 / 0)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
def test_an_interrupt_is_put_off_while_something_must_not_be_left_half_done():
    steps = []

    def call():
        with uninterrupted():
            steps.append("begun")
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            steps.append("done")
        steps.append("after")

    assert interrupted(call, 60) is None
    assert steps == ["begun", "done"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(sys.platform == "win32", reason="signals are different there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_libraries_are_looked_for_is_not_swallowed(number, monkeypatch):
    # Older threadpoolctl looks for them in a callback of the C library, whose errors Python drops.
    callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number))
    monkeypatch.setattr(_threads, "ThreadpoolController", lambda: callback() or "libraries")
    monkeypatch.setattr(_threads, "_seen", {})
    before = signal.signal(number, signal.default_int_handler)
    try:
        assert interrupted(controller, 60) is None
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
