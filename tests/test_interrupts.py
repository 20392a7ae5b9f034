"""Ctrl-C is told from other errors, also when a compiled function wraps it."""

from __future__ import annotations

import pytest

from linkwise._interrupts import INTERRUPTS, raise_if_not_interrupt


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
