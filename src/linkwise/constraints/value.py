"""Constraints: what is known about pairs of samples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from linkwise._jit import late_module
from linkwise.constraints import feasible, logic, parsing, sampling
from linkwise.constraints import table as tables
from linkwise.constraints.closure import Closure
from linkwise.constraints.formats import FORMATS, format_of, frame_columns, write_csv, write_pairs
from linkwise.constraints.labels import Labels, as_labels, row_names
from linkwise.constraints.table import PairTable, Violations, pair_keys, read_only
from linkwise.constraints.validation import (
    INDEX_REMEDIES,
    as_beliefs,
    as_count,
    as_integers,
    as_n_samples,
    as_pairs,
)
from linkwise.exceptions import TooLargeError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike
    from scipy.sparse import csr_array

    from linkwise._types import AnyArray, Bools, Floats, Ints
    from linkwise.constraints.conflict import Conflict

    RandomState = int | np.random.RandomState | None

sklearn_utils = late_module("sklearn.utils")  # takes a second to import

DEFAULT_PROOFS = 10_000  # chains computed unless another limit is given: a second at the most


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Constraints:
    """Must-link and cannot-link pairs, and partial labels, over `n_samples` samples.

    A frozen value that is valid from birth. Pairs are unordered; they are stored once, with
    the smaller index first, sorted. Of duplicates the one with the larger belief stays.

    A pair of belief 1 is a fact, one of lower belief is evidence. All logic (`components`,
    `closure`, `conflicts`, `check`) is about facts only. Two labelled samples are a certain
    pair: a must-link if their labels are equal, else a cannot-link. These implied pairs are
    never listed unless asked for.

    Parameters
    ----------
    n_samples : int
        The number of samples that the pairs are about.
    must_link, cannot_link : array-like of shape (m, 2), default=()
        Pairs of sample indices.
    must_link_belief, cannot_link_belief : float or array-like of shape (m,), default=None
        Degree of belief in (0, 1], one for all pairs or one for each. None means certain (1).
    labels : array-like of shape (n_samples,), default=None
        Partial labels, as :meth:`from_labels` takes them.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,) or None
        Partial labels as integers, -1 where unknown.
    classes : ndarray or None
        The names that the integers stand for, if the labels were given by name.

    Raises
    ------
    IndexError
        If an index is outside ``0 .. n_samples - 1``. Contradictions are no error here: `check`
        and `conflicts` find them.

    Examples
    --------
    >>> from linkwise.constraints import Constraints
    >>> c = Constraints(5, must_link=[(0, 1), (1, 2)], cannot_link=[(2, 4)])
    >>> c
    Constraints(n_samples=5, must_link=2, cannot_link=1)
    >>> c.closure().cannot_link.tolist()
    [[0, 4], [1, 4], [2, 4]]
    """

    n_samples: int
    must_link: Ints
    cannot_link: Ints
    must_link_belief: Floats
    cannot_link_belief: Floats
    labels: Ints | None
    classes: AnyArray | None = field(init=False)  # name of each label
    table: PairTable = field(init=False)  # all explicit pairs; the four arrays are views of it
    row_names: ClassVar[Any] = None  # of a column of labels, its index: to notice another order
    ids: ClassVar[Any] = None  # names of the samples, if pairs were given by name: for messages

    def __init__(
        self,
        n_samples: int,
        must_link: ArrayLike | None = (),
        cannot_link: ArrayLike | None = (),
        *,
        must_link_belief: ArrayLike | None = None,
        cannot_link_belief: ArrayLike | None = None,
        labels: Any = None,
    ) -> None:
        n = as_n_samples(n_samples)
        must = as_pairs(must_link, n, "must_link")
        cannot = as_pairs(cannot_link, n, "cannot_link")
        table = PairTable.of(
            must,
            cannot,
            must_link_belief=as_beliefs(must_link_belief, must, "must_link"),
            cannot_link_belief=as_beliefs(cannot_link_belief, cannot, "cannot_link"),
        )
        known = None if labels is None else as_labels(labels, n)
        vars(self).update(vars(self._of(n, table.unique(n), known)))

    @classmethod
    def _of(
        cls, n_samples: int, table: PairTable, known: Labels | None, ids: Any = None
    ) -> Constraints:
        """Return the constraints of a table that is sorted and without duplicates."""
        for column in table:
            column.setflags(write=False)
        labels = classes = None
        if known is not None and (known.values >= 0).any():
            labels = read_only(known.values)
            classes = None if known.classes is None else read_only(known.classes)
        n_must = int((table.sign > 0).sum())
        made = cls.__new__(cls)
        vars(made).update(
            n_samples=n_samples,
            must_link=table.pairs[:n_must],
            cannot_link=table.pairs[n_must:],
            must_link_belief=table.belief[:n_must],
            cannot_link_belief=table.belief[n_must:],
            labels=labels,
            classes=classes,
            table=table,
        )
        if ids is not None:
            vars(made)["ids"] = ids
        return made

    # Builders ------------------------------------------------------------------------------

    @classmethod
    def from_table(
        cls, n_samples: int, table: PairTable, *, labels: Any = None, ids: Any = None
    ) -> Constraints:
        """Return the constraints of a table; proofs name the rows that it holds.

        Parameters
        ----------
        n_samples : int
            Number of samples.
        table : PairTable
            The pairs, as in `table`.
        labels : array-like of shape (n_samples,) or None, default=None
            Partial labels; see `from_labels`.
        ids : sequence of length n_samples or None, default=None
            Names of the samples, by which messages name them.
        """
        known = None if labels is None else as_labels(labels, n_samples)
        names = None if ids is None else np.array(list(map(str, ids)), dtype=object)
        return cls._of(n_samples, table.unique(n_samples), known, names)

    @classmethod
    def from_labels(cls, y: Any) -> Constraints:
        """Return the constraints that partial labels state.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Integers from 0 up, text, booleans or categories; a list, an array or the column of a
            data frame. None, NaN and NA are unknown labels; among integers -1, in text an empty
            one. Names are kept as `classes`, and a fitted estimator has them as ``classes_``.

        Examples
        --------
        >>> Constraints.from_labels([0, -1, 0, 1])
        Constraints(n_samples=4, must_link=0, cannot_link=0, labelled=3 in 2 classes)
        >>> Constraints.from_labels(["cat", None, "cat", "dog"]).classes.tolist()
        ['cat', 'dog']
        """
        known = as_labels(y, name="y")
        n = as_n_samples(known.values.size)
        made = cls._of(n, PairTable.of(*[np.empty((0, 2), dtype=np.intp)] * 2), known)
        vars(made)["row_names"] = row_names(y)
        return made

    @classmethod
    def from_frame(
        cls,
        df: Any,
        n_samples: int | None = None,
        *,
        ids: Sequence[object] | None = None,
        columns: Sequence[str] | None = None,
        skip_unknown: bool = False,
    ) -> Constraints:
        """Read pairs from a data frame with the columns `i`, `j`, `link` and perhaps `belief`.

        All problems of the table are in one error. Pairs that are given more than once, and
        must-links of a sample to itself, are left out with a warning.

        Parameters
        ----------
        df : DataFrame or mapping of columns
            `link` holds ``must`` or ``cannot``, ``same`` or ``different``, ``yes`` or ``no``,
            ``true`` or ``false``, ``ml`` or ``cl``, 1 or -1, or 1 or 0; in any case. Any
            library's frame will do.
        n_samples : int, default=None
            The number of samples; needed if there are no `ids`.
        ids : sequence, default=None
            Distinct names in the order of the samples. With it, `i` and `j` hold names, which
            are compared as text. Without it they hold positions.
        columns : sequence of str, default=None
            What the columns are called if not `i`, `j`, `link` (and `belief`), in this order.
        skip_unknown : bool, default=False
            Whether to leave out pairs of samples that are not known, with a warning.

        Examples
        --------
        >>> table = {"a": [0, 1], "b": [1, 2], "verdict": ["same", "different"]}
        >>> Constraints.from_frame(table, 3, columns=("a", "b", "verdict"))
        Constraints(n_samples=3, must_link=1, cannot_link=1)
        """
        found = parsing.pair_table(
            frame_columns(df), n_samples, ids, columns=columns, skip_unknown=skip_unknown
        )
        return cls.from_table(*found, ids=ids)

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], n_samples: int | None = None, **how: Any
    ) -> Constraints:
        """Read pairs from a CSV file in UTF-8; columns and parameters as in `from_frame`.

        Columns may be separated by commas, semicolons or tabs.

        Parameters
        ----------
        path : str or path-like
            The file to read.
        n_samples : int or None, default=None
            Number of samples; with ``ids`` it is known.
        **how : dict
            Other parameters of `from_frame`, such as ``ids``.
        """
        columns = FORMATS[".csv"].read(Path(path))
        found = parsing.pair_table(columns, n_samples, **how)
        return cls.from_table(*found, ids=how.get("ids"))

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], n_samples: int | None = None, **how: Any
    ) -> Constraints:
        """Read pairs from a file in the format that its suffix names, CSV by default.

        Parameters are those of `from_frame`.

        Parameters
        ----------
        path : str or path-like
            The file to read.
        n_samples : int or None, default=None
            Number of samples; with ``ids`` it is known.
        **how : dict
            Other parameters of `from_frame`, such as ``ids``.
        """
        columns = format_of(path).read(Path(path))
        found = parsing.pair_table(columns, n_samples, **how)
        return cls.from_table(*found, ids=how.get("ids"))

    @classmethod
    def sample(cls, y: Any, n_pairs: int, random_state: RandomState = None) -> Constraints:
        """Draw pairs of samples uniformly and link them by their true labels.

        Every pair of samples is equally likely, and none is drawn twice: the protocol of the
        papers. Samples with ``y == -1`` take no part.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            True labels; -1 where unknown.
        n_pairs : int
            The number of pairs, must-links and cannot-links together.
        random_state : int, RandomState or None, default=None
            Pass an int for the same pairs each time.

        Examples
        --------
        >>> c = Constraints.sample([0, 0, 1, 1], n_pairs=6, random_state=0)
        >>> c.must_link.tolist()
        [[0, 1], [2, 3]]
        """
        labels = as_labels(y, name="y").values
        size = as_count(n_pairs, "n_pairs", minimum=0)
        pairs = sampling.sample_pairs(labels, size, sklearn_utils.check_random_state(random_state))
        same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
        return cls(labels.size, pairs[same], pairs[~same])

    # Looking at it -------------------------------------------------------------------------

    def __repr__(self) -> str:
        shown = [
            f"n_samples={self.n_samples}",
            f"must_link={len(self.must_link)}",
            f"cannot_link={len(self.cannot_link)}",
        ]
        n_uncertain = int((self.table.belief < 1).sum())
        if n_uncertain:
            shown.append(f"uncertain={n_uncertain}")
        if self.labels is not None:
            known = self.labels[self.labels >= 0]
            shown.append(f"labelled={known.size} in {np.unique(known).size} classes")
        return f"Constraints({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraints):
            return NotImplemented
        names = [
            f"{kind}{what}" for kind in ("must_link", "cannot_link") for what in ("", "_belief")
        ]
        return self.n_samples == other.n_samples and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in (*names, "labels", "classes")
        )

    def __hash__(self) -> int:
        return hash((self.n_samples, self.must_link.tobytes(), self.cannot_link.tobytes()))

    @property
    def n_pairs(self) -> int:
        """The number of explicit pairs (without those that labels imply)."""
        return len(self.table.pairs)

    @property
    def known_labels(self) -> Labels | None:
        """The labels with their names, or None without any."""
        return None if self.labels is None else Labels(self.labels, self.classes)

    @property
    def is_empty(self) -> bool:
        """Whether there are neither pairs nor labels."""
        return self.n_pairs == 0 and self.labels is None

    @property
    def constrained(self) -> Bools:
        """Which samples are in a pair or have a label; the others are free."""
        touched = np.zeros(self.n_samples, dtype=bool)
        touched[self.table.pairs.ravel()] = True
        if self.labels is not None:
            touched |= self.labels >= 0
        return touched

    # Logic: each of these is computed once per value ---------------------------------------

    @cached_property
    def facts(self) -> logic.Facts:
        """The certain part, which all logic is about."""
        facts = logic.facts_of(self.n_samples, self.table, self.known_labels, self.ids)
        for array in facts[1:-1]:
            read_only(array)
        return facts

    @cached_property
    def _component(self) -> Ints:
        component: Ints = read_only(logic.components(self.facts))
        return component

    @cached_property
    def contradictions(self) -> logic.Contradictions:
        """What contradicts the must-links, found but not proved; see `conflicts`."""
        return logic.contradictions(self.facts, self._component)

    @cached_property
    def contraction(self) -> logic.Contraction:
        """The graph of cannot-links between groups of must-linked samples."""
        return logic.contract(self.facts, self._component)

    @cached_property
    def _closure(self) -> Closure:
        return Closure(self, self.contraction)

    @cached_property
    def certain(self) -> Constraints:
        """The same labels, and the pairs of belief 1."""
        is_certain = self.table.belief == 1
        return self if is_certain.all() else self.subset(is_certain)

    def components(self) -> Ints:
        """Return the group of each sample under certain must-links and equal labels.

        Groups are numbered by their first sample. The array is read-only.

        Examples
        --------
        >>> Constraints(5, must_link=[(1, 3)], labels=[-1, -1, 7, -1, 7]).components().tolist()
        [0, 1, 2, 1, 2]
        """
        return self._component

    def closure(self) -> Closure:
        """Return everything that the certain pairs and labels entail.

        Raises
        ------
        ConflictError
            If they contradict each other: from a contradiction, anything follows.
        """
        if self.contradictions.total:
            feasible.raise_contradiction(self.facts, self.contradictions)
        return self._closure

    def conflicts(self, limit: int | None = DEFAULT_PROOFS) -> list[Conflict]:
        """Return the contradictions among certain pairs and labels, each with its proof.

        A contradiction is a certain cannot-link inside a must-link group, or a pair of
        different labels that share one. Its proof is a shortest chain of must-links and equal
        labels. Finding all contradictions takes linear time; each chain takes a search from
        both its endpoints.

        Parameters
        ----------
        limit : int or None, default=10_000
            Prove at most this many: pairs of labels first, then cannot-links in sorted order.
            None for all. `n_conflicts` always counts all of them.

        Examples
        --------
        >>> c = Constraints(10, must_link=[(4, 7), (7, 9)], cannot_link=[(4, 9)])
        >>> print(c.conflicts()[0])
        Samples 4 and 9 are cannot-linked, but the must-links 4 - 7 - 9 put them in one cluster.
        Remove one of these links (cannot-link #0; must-links #0, #1), or give them beliefs below 1.
        """
        if limit is not None:
            limit = as_count(limit, "limit", remedy=" None means no limit.")
        found = self.contradictions
        if limit == DEFAULT_PROOFS < found.total:  # the user did not ask for this limit
            message = (
                f"{found.total:,} contradictions were found; {limit:,} of them are proved here. "
                "Pass limit=None for all."
            )
            warnings.warn(message, UserWarning, stacklevel=2)
        return logic.explain(self.facts, found, limit)

    @property
    def n_conflicts(self) -> int:
        """The number of contradictions, counted without proofs."""
        return self.contradictions.total

    def check(self, n_clusters: int | None = None) -> None:
        """Raise ConflictError if the certain pairs and labels cannot all hold.

        Parameters
        ----------
        n_clusters : int, default=None
            Also check whether this many clusters suffice, if none has to be used. The answer is
            exact for one and two clusters, and whenever every group of cannot-links has a
            member with fewer than `n_clusters`. For others the question is graph colouring: an
            error is always right, but no error proves nothing.

        Raises
        ------
        ConflictError
            With a proof in the pairs as they were given: the chain of a contradiction, too
            many labels, an odd ring of cannot-links, samples that are pairwise apart, a
            wheel, or a set of pairs that exhaustive search found impossible. See its
            attributes.

        Examples
        --------
        Four samples that are pairwise apart do not fit in three clusters.

        >>> from linkwise import ConflictError
        >>> c = Constraints(5, cannot_link=[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
        >>> c.check(4)
        >>> try:
        ...     c.check(3)
        ... except ConflictError as error:
        ...     print(error.kind, error.cannot_link, error.bracket)
        clique (0, 1, 2, 3, 4, 5) (4, 4)
        """
        if n_clusters is not None:
            n_clusters = as_count(n_clusters, "n_clusters")
        if self.contradictions.total:
            feasible.raise_contradiction(self.facts, self.contradictions)
        if n_clusters is not None:
            feasible.check_feasible(self, n_clusters)

    # Comparing with a clustering -----------------------------------------------------------

    def is_violated(self, labels: ArrayLike) -> Bools:
        """Return which rows of `table` a clustering violates.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            The cluster of each sample. Every value is a cluster, -1 too.
        """
        return self.table.is_violated(self._clusters(labels))

    def violated(self, labels: ArrayLike) -> Constraints:
        """Return the explicit pairs that a clustering violates, with their beliefs.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of each sample: integers or strings.

        Examples
        --------
        >>> c = Constraints(4, must_link=[(0, 1), (2, 3)], cannot_link=[(0, 3)])
        >>> c.violated([0, 0, 0, 1])
        Constraints(n_samples=4, must_link=1, cannot_link=0)
        """
        is_violated = self.table.is_violated(self._clusters(labels))
        return self._of(self.n_samples, self.table.kept(is_violated), None)

    def count_violated(self, labels: ArrayLike) -> Violations:
        """Count the pairs that a clustering violates, explicit and label-implied.

        An explicit pair that only repeats what the labels imply is counted once.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of each sample: integers or strings.
        """
        clusters = self._clusters(labels)
        wrong = self.table.is_violated(clusters)
        implied_must = implied_cannot = 0
        if self.labels is not None:
            wrong &= ~self._is_implied
            implied_must, implied_cannot = tables.count_implied_violated(self.labels, clusters)
        n_must = int(wrong[self.table.is_must_link].sum())
        return Violations(n_must + implied_must, int(wrong.sum()) - n_must + implied_cannot)

    def n_violated(self, labels: ArrayLike) -> int:
        """Return the total of `count_violated`.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of each sample: integers or strings.
        """
        return sum(self.count_violated(labels))

    def satisfied(self, labels: ArrayLike) -> float:
        """Return the share of pairs that a clustering satisfies, weighted by belief.

        Counts explicit and label-implied pairs (belief 1); a pair that is both counts once.
        Without any pair the share is 1.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of each sample: integers or strings.
        """
        clusters = self._clusters(labels)
        belief = np.where(self._is_implied, 0.0, self.table.belief)
        total = sum(tables.count_implied(self.labels)) + float(belief.sum())
        violated = sum(tables.count_implied_violated(self.labels, clusters)) + float(
            belief[self.table.is_violated(clusters)].sum()
        )
        return 1.0 - violated / total if total else 1.0

    @property
    def n_distinct_pairs(self) -> int:
        """The number of pairs, explicit and label-implied; one that is both counts once."""
        return sum(tables.count_implied(self.labels)) + int((~self._is_implied).sum())

    def _clusters(self, labels: ArrayLike) -> Ints:
        """Return the clusters of a clustering, numbered from 0."""
        array = np.asarray(labels)
        if array.shape != (self.n_samples,):
            raise ValueError(
                f"labels has shape {array.shape}, but the constraints are about {self.n_samples} "
                "samples. Pass one cluster per sample, or use constraints.restrict(indices)."
            )
        return np.unique(array, return_inverse=True)[1]

    @cached_property
    def _is_implied(self) -> Bools:
        """Which explicit pairs the labels imply as well."""
        if self.labels is None:
            return np.zeros(self.table.sign.size, dtype=bool)
        labels = self.labels[self.table.pairs]
        same: Bools = labels[:, 0] == labels[:, 1]
        return (labels >= 0).all(axis=1) & (same == self.table.is_must_link)

    # Pairs for methods ---------------------------------------------------------------------

    def to_matrix(self) -> csr_array:
        """Return a symmetric matrix: belief of must-links minus belief of cannot-links.

        Holds explicit and label-implied pairs.

        Raises
        ------
        TooLargeError
            Above 20 million pairs; `signed_pairs` gives a sparse stand-in.
        """
        n_pairs = self.n_pairs + sum(tables.count_implied(self.labels))
        if n_pairs > tables.MAX_PAIRS:
            raise TooLargeError(
                f"The matrix would hold {n_pairs} pairs, most of them implied by labels; at most "
                f"{tables.MAX_PAIRS} are listed. Use signed_pairs(), a sparse stand-in with the "
                "same closure."
            )
        return tables.constraint_matrix(self, tables.MAX_PAIRS)

    def signed_pairs(self, limit: int = 1_000_000) -> tuple[Ints, Floats]:
        """Return pairs with signed weights: must-links first, then cannot-links, each sorted.

        Parameters
        ----------
        limit : int, default=1_000_000
            List all label-implied pairs if they are at most this many. Otherwise list a sparse
            deterministic stand-in with the same closure: a few pairs per labelled sample (about
            the logarithm of its class within it, one per other class across), usually far fewer
            than `limit`, or more if the explicit pairs or the closure take more.

        Returns
        -------
        pairs : ndarray of shape (m, 2)
            Explicit and label-implied pairs; one that is both appears once. A pair with
            evidence for and against appears once for each.
        weights : ndarray of shape (m,)
            Belief of a must-link, minus the belief of a cannot-link.
        """
        listed = tables.some_pairs(self, limit)
        return listed.pairs, listed.sign * listed.belief

    def with_belief(self, belief: float) -> Constraints:
        """Return the same pairs with one belief for all of them.

        Labels are always certain. For a belief below 1 they become the pairs that they imply,
        if these are at most a million.

        Parameters
        ----------
        belief : float in (0, 1]
            Belief in every pair; 1 makes them certain.
        """
        table, labels = self.table, self.known_labels
        if labels is not None and belief != 1:
            table, labels = tables.all_pairs(self, "with_belief turns labels into pairs"), None
        beliefs = as_beliefs(belief, table.pairs, "must_link")
        return self._of(
            self.n_samples, table._replace(belief=beliefs).unique(self.n_samples), labels, self.ids
        )

    def to_csv(self, path: str | os.PathLike[str], *, ids: Sequence[object] | None = None) -> None:
        """Write the pairs to a CSV file that `from_csv` reads.

        Label-implied pairs are written as explicit ones, if these are at most a million. The
        file is replaced only when the new one is complete.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        ids : sequence of length n_samples, default=None
            Distinct names to write instead of positions.
        """
        names = None if ids is None else list(parsing.id_positions(ids, self.n_samples))
        write_csv(Path(path), tables.all_pairs(self, "to_csv writes pairs"), names)

    def to_file(self, path: str | os.PathLike[str], *, ids: Sequence[object] | None = None) -> None:
        """Write the pairs in the format that the suffix names, CSV by default; see `to_csv`.

        Parameters
        ----------
        path : str or path-like
            The file to write.
        ids : sequence of length n_samples or None, default=None
            Names of the samples; row numbers by default.
        """
        names = None if ids is None else list(parsing.id_positions(ids, self.n_samples))
        write_pairs(Path(path), tables.all_pairs(self, "to_file writes pairs"), names)

    # Subsets -------------------------------------------------------------------------------

    def with_pairs(
        self, must_link: ArrayLike | None = (), cannot_link: ArrayLike | None = ()
    ) -> Constraints:
        """Return these constraints and more certain pairs.

        Parameters
        ----------
        must_link : array-like of shape (n_pairs, 2), default=()
            More pairs of one cluster.
        cannot_link : array-like of shape (n_pairs, 2), default=()
            More pairs of different clusters.

        Examples
        --------
        >>> Constraints(3, must_link=[(0, 1)]).with_pairs(cannot_link=[(1, 2)])
        Constraints(n_samples=3, must_link=1, cannot_link=1)
        """
        must = as_pairs(must_link, self.n_samples, "must_link")
        cannot = as_pairs(cannot_link, self.n_samples, "cannot_link")
        table = self.table.joined(PairTable.of(must, cannot))
        return self._of(self.n_samples, table.unique(self.n_samples), self.known_labels, self.ids)

    def restrict(self, indices: ArrayLike | slice) -> Constraints:
        """Return the constraints on some samples, renumbered in the order given.

        Explicit pairs with an end outside are dropped, so a pair that is entailed only through
        a dropped sample is lost. ``c.closure().to_constraints().restrict(indices)`` keeps it.

        Parameters
        ----------
        indices : array-like of int, boolean mask or slice
            Distinct samples.

        Examples
        --------
        >>> c = Constraints(5, must_link=[(0, 1)], cannot_link=[(1, 4)])
        >>> c.restrict([4, 1]).cannot_link.tolist()
        [[0, 1]]
        """
        chosen = _as_indices(indices, self.n_samples)
        position = np.full(self.n_samples, -1, dtype=np.intp)
        position[chosen] = np.arange(chosen.size)
        pairs = position[self.table.pairs]
        inside = (pairs >= 0).all(axis=1)
        table = self.table.kept(inside)._replace(pairs=np.sort(pairs[inside], axis=1))
        labels = None if self.labels is None else Labels(self.labels[chosen], self.classes)
        ids = None if self.ids is None else self.ids[chosen]
        return self._of(chosen.size, table.unique(chosen.size), labels, ids)

    def split(
        self, n_folds: int, random_state: RandomState = None
    ) -> Iterator[tuple[Constraints, Constraints]]:
        """Yield (train, test) constraints for cross-validation without leaks.

        The explicit pairs are put into folds at random. A test pair that the training part
        entails, either way, would be no test: it is dropped, and is in neither part. Where
        must-links are dense, that can be most of a fold; look at ``test.n_pairs``. Every pair
        is tested at most once. Labels stay in the training part; without explicit pairs all tests
        are empty.

        Parameters
        ----------
        n_folds : int
            The number of folds, at least 2.
        random_state : int, RandomState or None, default=None
            Pass an int for the same folds each time.
        """
        n_folds = as_count(n_folds, "n_folds")
        # Evidence for and against one pair goes into one fold: it is one question.
        keys = pair_keys(self.table.pairs, self.n_samples)
        distinct, which = np.unique(keys, return_inverse=True)
        if distinct.size == 0 and n_folds >= 2:
            return iter([(self, Constraints(self.n_samples))] * n_folds)
        if not 2 <= n_folds <= distinct.size:
            raise ValueError(
                f"n_folds is {n_folds}, but it must be at least 2 and at most the number of "
                f"distinct explicit pairs ({distinct.size})."
            )
        rng = sklearn_utils.check_random_state(random_state)
        fold = sampling.draw_folds(distinct.size, n_folds, rng)[which]
        return (self._fold(fold == k) for k in range(n_folds))

    def _fold(self, is_test: Bools) -> tuple[Constraints, Constraints]:
        """Return the training part, and the test pairs that it does not entail."""
        train = self.subset(~is_test)
        entailed = train._closure.relation(*self.table.pairs.T) != 0
        test = self.table.kept(is_test & ~entailed)
        return train, self._of(self.n_samples, test, None, self.ids)

    def subset(self, kept: Bools) -> Constraints:
        """Return some of the explicit pairs, chosen by rows of `table`, and the labels.

        Parameters
        ----------
        kept : ndarray of bool
            Which rows of `table` to keep.
        """
        return self._of(self.n_samples, self.table.kept(kept), self.known_labels, self.ids)

    # Being indexed by scikit-learn's cross-validation --------------------------------------

    def __len__(self) -> int:
        return self.n_samples

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``: scikit-learn indexes what has as many rows as X."""
        return (self.n_samples,)

    def __getitem__(self, key: Any) -> Constraints:
        """Return ``restrict(key)``; also takes the ``(indices, ...)`` of scikit-learn."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        return self.restrict(key)

    # Having a length and items makes a sequence; iterating over it would never be meant.
    __iter__ = None

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError("Constraints are not an array. Use to_matrix() or signed_pairs().")

    # Copies and pickles: numpy does not keep that an array is read-only --------------------------

    def __copy__(self) -> Constraints:
        return self

    def __deepcopy__(self, memo: object) -> Constraints:
        return self

    def __getstate__(self) -> tuple[int, PairTable, Labels | None, Any]:
        return self.n_samples, self.table, self.known_labels, self.ids

    def __setstate__(self, state: tuple[int, PairTable, Labels | None, Any]) -> None:
        vars(self).update(vars(self._of(*state)))


def _as_indices(value: Any, n_samples: int) -> Ints:
    """Return distinct sample indices from integers, a boolean mask or a slice."""
    if isinstance(value, slice):
        array: AnyArray = np.arange(n_samples)[value]
    else:
        array = np.atleast_1d(np.asarray(value))
    if array.ndim != 1:
        raise IndexError(f"indices has shape {array.shape}, but it must be one-dimensional.")
    if array.dtype.kind == "b":
        if array.size != n_samples:
            message = f"The mask has {array.size} entries, but there are {n_samples} samples."
            raise IndexError(message)
        array = np.flatnonzero(array)
    if array.size == 0:
        raise ValueError("indices selects no sample, but constraints need at least one.")
    is_whole = array.dtype.kind == "i"
    indices = array.astype(np.intp) if is_whole else as_integers(array, "indices", INDEX_REMEDIES)
    wrong = np.flatnonzero((indices < 0) | (indices >= n_samples))
    if wrong.size:
        raise IndexError(
            f"indices[{wrong[0]}] is {indices[wrong[0]]}, but there are only {n_samples} samples "
            f"(valid indices are 0..{n_samples - 1})."
        )
    repeated = np.bincount(indices)[indices] > 1
    if repeated.any():
        raise ValueError(
            f"indices holds the sample {indices[repeated.argmax()]} more than once. "
            "Constraints are about distinct samples: pass np.unique(indices)."
        )
    return indices
