"""load and available: the catalogue's doors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise._hints import hint
from linkwise.datasets import folder, openml
from linkwise.datasets.catalogue import (
    ALIASES,
    CATALOGUE,
    FINGERPRINTS,
    BuiltIn,
    Derived,
    Entry,
    Made,
    Stored,
)
from linkwise.datasets.preprocess import fingerprint
from linkwise.datasets.value import Dataset, DatasetNotFoundError, UnverifiedDataWarning

if TYPE_CHECKING:
    import os
    from pathlib import Path

    PathLike = str | os.PathLike[str]
    RandomState = int | np.random.RandomState | None


@dataclass(frozen=True)
class Listing:
    """A line of `available`.

    Parameters
    ----------
    name : str
        What `load` calls it.
    n_samples, n_clusters : int
        Number of samples and of classes.
    n_features : int or None
        Number of features; None for a graph.
    origin : str
        ``"scikit-learn"``, ``"made"``, ``"folder or OpenML"`` or ``"folder"``.
    here : bool
        Whether it can be loaded without a network.
    path : Path or None
        The file it would be read from.
    description : str
        What the data are, what was done to them, and which papers use them.
    """

    name: str
    n_samples: int
    n_features: int | None
    n_clusters: int
    origin: str
    here: bool
    path: Path | None
    description: str


def load(
    name: str,
    *,
    data_home: PathLike | None = None,
    random_state: RandomState = 0,
    fetch: bool = True,
    verify: bool = True,
) -> Dataset:
    """Load a data set by name.

    Small sets come with scikit-learn, others are made on the spot. All others are read from
    ``NAME.npz`` in a folder (arrays `X` and `y`), or fetched from OpenML where it has them;
    what was fetched stays in the cache of scikit-learn.

    Parameters
    ----------
    name : str
        A name that `available` lists, or one that the papers use, like ``"breast_cancer"``.
    data_home : path-like, default=None
        The folder of data files. None means what the environment variable ``LINKWISE_DATA`` says.
    random_state : int, RandomState instance or None, default=0
        Seed of data made on the spot.
    fetch : bool, default=True
        Whether the network may be used.
    verify : bool, default=True
        Whether data from a file or the network are compared with what the catalogue knows: the
        number of features and the sizes of the classes must be equal, and a difference in content
        is warned of.

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError
        If the name is no text.
    ValueError
        If there is no data set of that name, or its file is damaged or of another size.
    DatasetNotFoundError
        If the data are neither in the folder nor to be had from OpenML. A FileNotFoundError.

    Examples
    --------
    >>> wine = load("wine2")
    >>> wine.X.shape, wine.n_clusters
    ((130, 13), 2)
    """
    entry = _entry(name)
    request = _Request(data_home, random_state, fetch, verify)
    X, y, source, same = request.obtain(entry)
    if verify and same is False:
        message = (
            f"{source} has the size of {_root(entry).name}, but its values differ from the copy "
            f"that the catalogue knows, so results may differ too. Pass verify=False to say that "
            f"this is fine."
        )
        warnings.warn(message, UnverifiedDataWarning, stacklevel=2)
    return Dataset(entry.name, X, y, entry.description, source, verified=bool(same))


def available(*, data_home: PathLike | None = None) -> list[Listing]:
    """List the data sets that `load` knows, and which of them are here.

    Parameters
    ----------
    data_home : path-like, default=None
        The folder of data files. None means what the environment variable ``LINKWISE_DATA`` says.

    Returns
    -------
    list of Listing

    Examples
    --------
    >>> [listing.name for listing in available() if listing.origin == "scikit-learn"]
    ['iris', 'wine', 'wdbc', 'digits', 'digits_extended', 'iris2', 'wine2', 'wine119']
    """
    return [_listing(entry, data_home) for entry in CATALOGUE.values()]


def _entry(name: Any) -> Entry:
    if not isinstance(name, str):
        raise TypeError(
            f"A data set is asked for by its name, got {type(name).__name__} {name!r}. "
            f"available() lists the names."
        )
    key = name.strip().lower().replace("-", "_").replace(" ", "_")
    key = ALIASES.get(key, key)
    if key in CATALOGUE:
        return CATALOGUE[key]
    near = hint(key, [*CATALOGUE, *ALIASES], listed=CATALOGUE)
    raise ValueError(f"There is no data set {name!r}.{near}")


def _root(entry: Entry) -> Entry:
    """Return the data set that an entry is made from, in the end."""
    while isinstance(entry.how, Derived):
        entry = CATALOGUE[entry.how.base]
    return entry


def _listing(entry: Entry, data_home: PathLike | None) -> Listing:
    root = _root(entry)
    path = folder.find(root.name, data_home) if isinstance(root.how, Stored) else None
    return Listing(
        name=entry.name,
        n_samples=entry.n_samples,
        n_features=entry.n_features,
        n_clusters=entry.n_clusters,
        origin=_origin(root),
        here=path is not None or not isinstance(root.how, Stored),
        path=path,
        description=entry.description,
    )


def _origin(root: Entry) -> str:
    if isinstance(root.how, Stored):
        return "folder" if root.how.openml is None else "folder or OpenML"
    return "scikit-learn" if isinstance(root.how, BuiltIn) else "made"


@dataclass(frozen=True)
class _Request:
    """The settings of one call of `load`."""

    data_home: PathLike | None
    random_state: RandomState
    fetch: bool
    verify: bool

    def obtain(self, entry: Entry) -> tuple[Any, Any, str, bool | None]:
        """Return X, y, where they come from, and whether they are right (None: who knows)."""
        how = entry.how
        if isinstance(how, BuiltIn):
            return *_of_scikit_learn(how.loader), f"scikit-learn, {how.loader}", True
        if isinstance(how, Made):
            return *how.make(random_state=self.random_state), "made on the spot", True
        if isinstance(how, Derived):
            X, y, source, same = self.obtain(CATALOGUE[how.base])
            return *how.change(X, y), source, same
        X, y, source = self._stored(entry.name, how)
        same = self._same(entry, (X, y), source)
        return X, y, source, same

    def _stored(self, name: str, how: Stored) -> tuple[Any, Any, str]:
        path = folder.find(name, self.data_home)
        if path is not None:
            return *folder.read(path), str(path)
        if how.openml is None or not self.fetch:
            raise DatasetNotFoundError(self._missing(name, how))
        try:
            X, y = openml.fetch(how.openml)
        except (OSError, ValueError) as error:
            raise DatasetNotFoundError(self._missing(name, how, error)) from error
        return X, y, f"OpenML, data_id={how.openml.data_id}"

    def _missing(self, name: str, how: Stored, error: Exception | None = None) -> str:
        home = folder.data_folder(self.data_home)
        where = "no folder is set" if home is None else f"there is no {name}.npz in {home}"
        if error is not None and how.openml is not None:
            fetched = f"fetching OpenML's data set {how.openml.data_id} failed: {error}"
        elif how.openml is not None:
            fetched = "fetch=False forbids to ask OpenML"
        else:
            fetched = "OpenML does not have it"
        return (
            f"The data set {name!r} is not here: {where}, and {fetched.rstrip('.')}. "
            f"Put a file {name}.npz with arrays X (samples by features) and y (labels) into a "
            f"folder, and name that folder with data_home= or the environment variable "
            f"{folder.VARIABLE}."
        )

    def _same(self, entry: Entry, data: tuple[Any, Any], source: str) -> bool | None:
        """Return whether data are those of the catalogue; raise for those of another size."""
        X, y = data
        sizes = tuple(np.bincount(y).tolist())
        if (X.shape[1], sizes) == (entry.n_features, entry.class_sizes):
            known = FINGERPRINTS.get(entry.name)
            return None if known is None else known == fingerprint(X, y)
        if not self.verify:
            return None
        raise ValueError(
            f"{entry.name} has {entry.n_samples} samples of {entry.n_features} features, in "
            f"classes of {_sizes(entry.class_sizes)}; but {source} has {len(y)} of {X.shape[1]}, "
            f"in classes of {_sizes(sizes)}. Pass verify=False to take it as it is."
        )


def _sizes(sizes: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, sizes[:12]))
    return f"{shown}, ... ({len(sizes)} classes)" if len(sizes) > 12 else shown


def _of_scikit_learn(loader: str) -> tuple[Any, Any]:
    # Imported late: it brings in much that `import linkwise` can do without.
    from sklearn import datasets  # noqa: PLC0415

    X, y = getattr(datasets, loader)(return_X_y=True)
    return X, y.astype(np.intp)
