"""Learning curves: methods compared on the same constraints, as the papers do it.

:func:`learning_curve` fits every method on every draw of constraints and returns a
:class:`Curves`, which summarises, compares and writes what was measured.
"""

from linkwise.evaluate.data import Problem
from linkwise.evaluate.draws import draw_constraints
from linkwise.evaluate.estimators import NamedEstimator
from linkwise.evaluate.figures import draw_curves
from linkwise.evaluate.run import learning_curve
from linkwise.evaluate.table import Curves, Table, read_curves

__all__ = [
    "Curves",
    "NamedEstimator",
    "Problem",
    "Table",
    "draw_constraints",
    "draw_curves",
    "learning_curve",
    "read_curves",
]
