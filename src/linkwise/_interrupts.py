"""Ctrl-C, also where it hits a compiled function."""

from __future__ import annotations

# A compiled function that is interrupted may end with a SystemError, caused by the interrupt.
INTERRUPTS = (KeyboardInterrupt, SystemError)


def raise_if_not_interrupt(error: BaseException) -> None:
    """Raise an error again that is neither Ctrl-C nor was caused by it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__  # several, if a compiled one was loading
    if cause is None:
        raise error
