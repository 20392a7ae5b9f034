"""Ctrl-C, also where it hits a compiled function."""

from __future__ import annotations

__all__ = ["INTERRUPTS", "raise_if_not_interrupt"]

# A compiled function that is interrupted may end with a SystemError, caused by the interrupt.
INTERRUPTS = (KeyboardInterrupt, SystemError)


def raise_if_not_interrupt(error: BaseException) -> None:
    """Raise an error again that is neither Ctrl-C nor was caused by it."""
    cause = error.__cause__ or error.__context__
    if not isinstance(error, KeyboardInterrupt) and not isinstance(cause, KeyboardInterrupt):
        raise error
