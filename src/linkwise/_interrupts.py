"""Ctrl-C, also where it hits a compiled function."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from linkwise._types import Floats

T = TypeVar("T")

# A compiled function that is interrupted may end with a SystemError, caused by the interrupt.
INTERRUPTS = (KeyboardInterrupt, SystemError)


def raise_if_not_interrupt(error: BaseException) -> None:
    """Raise an error again that is neither Ctrl-C nor was caused by it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__  # several, if a compiled one was loading
    if cause is None:
        raise error


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Yield a list that gets an entry for every Ctrl-C.

    A search that hears one ends with the best answer so far, as if nothing had happened.
    """
    noted: list[int] = []
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        noted.append(number)
        if callable(before):
            before(number, frame)

    is_main = threading.current_thread() is threading.main_thread()
    if not (is_main and callable(before)):  # ignored, as in a background job; or not ours to hear
        yield noted
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


# Rows of a matrix up to which its eigenvectors take less than a second.
QUICK = 1_000
EVERY = 0.1  # seconds between looks at whether a call has ended


def interruptible_eigh(A: Floats) -> tuple[Floats, Floats]:
    """Return all eigenvalues and eigenvectors of a symmetric matrix; Ctrl-C is heard meanwhile.

    By NumPy, which lets other threads run in the meantime; SciPy does not.
    """
    if A.shape[0] <= QUICK:
        return np.linalg.eigh(A)
    return in_background(lambda: np.linalg.eigh(A))


def in_background(call: Callable[[], T]) -> T:
    """Run a long call of a library, which hears no interrupt, in a thread, and wait for it.

    After an interrupt the thread ends its call, and its answer is dropped.
    """
    if threading.current_thread() is not threading.main_thread():
        return call()  # interrupts come to the main thread only
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:  # raised where it is waited for
            errors.append(error)

    context: Any = copy_context()  # with the floating-point settings of NumPy
    thread = threading.Thread(target=context.run, args=(run,), daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(EVERY)
    if errors:
        raise errors[0]
    return answers[0]
