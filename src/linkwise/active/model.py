"""Model: an estimator that clusters the same prepared data again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from linkwise.auto import Auto
from linkwise.auto.views import Views
from linkwise.registry import METHODS

if TYPE_CHECKING:
    from collections.abc import Callable

    from linkwise._types import Ints
    from linkwise.constraints import Constraints
    from linkwise.graph import Prepared
    from linkwise.methods import ConstrainedClusterer


class Model:
    """Clusters prepared data under changing constraints; every solve but the first starts warm.

    A solver starts from what it found under the constraints before, and stops at the same
    tolerance as a cold one: up to that, the labels are a function of the constraints alone.
    `method` is a key of ``linkwise.METHODS``, which satisfies all constraints if it can and `hard`
    is set, or an estimator, which keeps its own seed if it has one.
    """

    def __init__(
        self,
        method: str | ConstrainedClusterer,
        data: Prepared,
        *,
        n_clusters: int | str,
        hard: bool,
        seed: int,
    ) -> None:
        self.name = method if isinstance(method, str) else type(method).__name__
        self.estimator: Any = (
            _by_key(method, hard=hard) if isinstance(method, str) else clone(method)
        )
        names = self.estimator.get_params(deep=False)
        settings: dict[str, Any] = {"n_clusters": n_clusters}
        if "random_state" in names and names["random_state"] is None:
            settings["random_state"] = seed
        if "affinity" in names:
            settings["affinity"] = None  # the graph is the one of the prepared data
        self.estimator.set_params(**settings)
        if data.is_graph and self.estimator.needs_features:
            message = f"{type(self.estimator).__name__} needs data, but only a graph is given."
            raise ValueError(message)
        self.callback: Callable[[float, str], None] | None = None
        # Of its own, so that labels do not depend on fits elsewhere.
        self._data = data.cold()

    @property
    def is_auto(self) -> bool:
        """Whether the method is Auto."""
        return isinstance(self.estimator, Auto)

    @property
    def chooses_number(self) -> bool:
        """Whether the number of clusters is unknown."""
        return isinstance(self.estimator.n_clusters, str)

    def labels(self, constraints: Constraints) -> Ints:
        """Return the clustering under the constraints."""
        labels: Ints = self.fitted(constraints).labels_
        return labels

    def fitted(self, constraints: Constraints, n_clusters: int | None = None) -> Any:
        """Return the estimator, fitted under the constraints, perhaps for another number."""
        estimator = clone(self.estimator)
        if n_clusters is not None:
            estimator.set_params(n_clusters=n_clusters)
        if self.callback is not None and "callback" in estimator.get_params(deep=False):
            estimator.set_params(callback=self.callback)  # after `clone`, which copies it
        try:
            return estimator.fit(self._data, constraints=constraints)
        finally:
            if self.is_auto:
                # They take memory, and answers would depend on which fits came before.
                Views.of(self._data).folds.clear()


def _by_key(method: str, *, hard: bool) -> Any:
    if method not in METHODS:
        raise ValueError(f"There is no method {method!r}; choose of {', '.join(METHODS)}.")
    estimator = METHODS[method]()
    if "hard" in estimator.get_params():
        estimator.set_params(hard=hard)
    return estimator
