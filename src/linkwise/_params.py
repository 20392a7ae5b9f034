"""The only import of scikit-learn's private parameter checks.

They are private there, so one module holds them: when scikit-learn moves them, one line changes.
"""

from __future__ import annotations

from sklearn.base import _fit_context
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    StrOptions,
)

validates_parameters = _fit_context

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "validates_parameters",
]
