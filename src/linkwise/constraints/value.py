"""Constraints: what is known about pairs of samples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.utils import check_random_state

from linkwise.constraints import feasible, implied, io, logic, sampling
from linkwise.constraints.closure import Closure
from linkwise.constraints.validation import (
    as_beliefs,
    as_count,
    as_indices,
    as_labels,
    as_n_samples,
    as_pairs,
    common_pair,
    pair_keys,
    read_only,
    unique_pairs,
)
from linkwise.exceptions import ConflictError, TooLargeError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike

    from linkwise._types import Bools, Floats, Ints
    from linkwise.constraints.conflict import Conflict

    RandomState = int | np.random.RandomState | None

__all__ = ["Constraints"]

DEFAULT_PROOFS = 10_000  # chains computed unless told otherwise: a second at the most
MAX_LISTED = 1_000_000  # label-implied pairs that are turned into explicit ones without asking


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
        Partial labels: integers from 0 up, and -1 where unknown.

    Raises
    ------
    IndexError
        If an index is outside ``0 .. n_samples - 1``.
    ConflictError
        If one pair is both must-linked and cannot-linked with certainty. Contradictions that
        take more than one pair to see are found by `check` and `conflicts`.

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
    # Where each stored pair was in the input: contradictions name these rows.
    _must_link_row: Ints = field(init=False)
    _cannot_link_row: Ints = field(init=False)

    def __init__(
        self,
        n_samples: int,
        must_link: ArrayLike | None = (),
        cannot_link: ArrayLike | None = (),
        *,
        must_link_belief: ArrayLike | None = None,
        cannot_link_belief: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> None:
        n = as_n_samples(n_samples)
        must = as_pairs(must_link, n, "must_link")
        cannot = as_pairs(cannot_link, n, "cannot_link")
        must_unique = unique_pairs(must, as_beliefs(must_link_belief, must, "must_link"), n)
        cannot_unique = unique_pairs(
            cannot, as_beliefs(cannot_link_belief, cannot, "cannot_link"), n
        )
        known = None if labels is None else as_labels(labels, n)
        if known is not None and (known < 0).all():
            known = None
        self._store(
            n_samples=n,
            must_link=must_unique.pairs,
            cannot_link=cannot_unique.pairs,
            must_link_belief=must_unique.belief,
            cannot_link_belief=cannot_unique.belief,
            labels=known,
            _must_link_row=must_unique.row,
            _cannot_link_row=cannot_unique.row,
        )
        self._refuse_direct_conflict()

    def _store(self, **attributes: Any) -> None:
        for name, value in attributes.items():
            stored = read_only(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, stored)

    def _refuse_direct_conflict(self) -> None:
        facts = self._facts()
        common = common_pair(facts.must_link, facts.cannot_link, self.n_samples)
        if common is None:
            return
        must, cannot = common
        i, j = facts.must_link[must].tolist()
        message = (
            f"The pair ({i}, {j}) is both must-linked (must_link[{facts.must_link_row[must]}]) and "
            f"cannot-linked (cannot_link[{facts.cannot_link_row[cannot]}]), with belief 1. "
            "Remove one of them, or give one a belief below 1."
        )
        raise ConflictError(
            message,
            (i, j),
            kind="contradiction",
            must_link=(int(facts.must_link_row[must]),),
            cannot_link=(int(facts.cannot_link_row[cannot]),),
        )

    # Builders ------------------------------------------------------------------------------

    @classmethod
    def from_labels(cls, y: ArrayLike) -> Constraints:
        """Return the constraints that partial labels state; -1 is an unknown label.

        Examples
        --------
        >>> Constraints.from_labels([0, -1, 0, 1])
        Constraints(n_samples=4, must_link=0, cannot_link=0, labelled=3 in 2 classes)
        """
        labels = as_labels(y, name="y")
        return cls(labels.size, labels=labels)

    @classmethod
    def from_frame(
        cls, df: Any, n_samples: int | None = None, *, ids: Sequence[object] | None = None
    ) -> Constraints:
        """Read pairs from a data frame with the columns `i`, `j`, `link` and perhaps `belief`.

        Parameters
        ----------
        df : DataFrame or mapping of columns
            `link` holds ``must`` or ``cannot`` (also ``must-link``, ``ml``, ``1``, and
            ``cannot-link``, ``cl``, ``-1``; in any case). Any library's frame will do.
        n_samples : int, default=None
            The number of samples; needed if there are no `ids`.
        ids : sequence, default=None
            Distinct names in the order of the samples. With it, `i` and `j` hold names, which
            are compared as text. Without it they hold positions.
        """
        return cls._from_table(io.read_frame(df, n_samples, ids))

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        n_samples: int | None = None,
        *,
        ids: Sequence[object] | None = None,
    ) -> Constraints:
        """Read pairs from a CSV file in UTF-8; columns and parameters as in `from_frame`."""
        return cls._from_table(io.read_csv(path, n_samples, ids))

    @classmethod
    def _from_table(cls, table: io.PairTable) -> Constraints:
        must, cannot = table.is_must, ~table.is_must
        made = cls(
            table.n_samples,
            table.pairs[must],
            table.pairs[cannot],
            must_link_belief=table.belief[must],
            cannot_link_belief=table.belief[cannot],
        )
        # Contradictions then name the lines of the file instead of rows of these arrays.
        made._store(
            _must_link_row=table.row[must][made._must_link_row],
            _cannot_link_row=table.row[cannot][made._cannot_link_row],
        )
        return made

    @classmethod
    def sample(cls, y: ArrayLike, n_pairs: int, random_state: RandomState = None) -> Constraints:
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
        labels = as_labels(y, name="y")
        known = np.flatnonzero(labels >= 0)
        n_all = implied.choose_two(known.size)
        size = as_count(n_pairs, "n_pairs", minimum=0)
        if size > n_all:
            message = (
                f"n_pairs is {size}, but the {known.size} samples with a known label have only "
                f"{n_all} distinct pairs."
            )
            raise ValueError(message)
        rng = check_random_state(random_state)
        pairs = known[sampling.unrank_pairs(sampling.draw_distinct(n_all, size, rng))]
        same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
        return cls(labels.size, pairs[same], pairs[~same])

    # Looking at it -------------------------------------------------------------------------

    def __repr__(self) -> str:
        shown = [
            f"n_samples={self.n_samples}",
            f"must_link={len(self.must_link)}",
            f"cannot_link={len(self.cannot_link)}",
        ]
        n_uncertain = int((self.must_link_belief < 1).sum() + (self.cannot_link_belief < 1).sum())
        if n_uncertain:
            shown.append(f"uncertain={n_uncertain}")
        if self.labels is not None:
            known = self.labels[self.labels >= 0]
            shown.append(f"labelled={known.size} in {np.unique(known).size} classes")
        return f"Constraints({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constraints):
            return NotImplemented
        names = ("must_link", "cannot_link", "must_link_belief", "cannot_link_belief", "labels")
        return self.n_samples == other.n_samples and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    def __hash__(self) -> int:
        return hash((self.n_samples, self.must_link.tobytes(), self.cannot_link.tobytes()))

    @property
    def n_pairs(self) -> int:
        """The number of explicit pairs (without those that labels imply)."""
        return len(self.must_link) + len(self.cannot_link)

    @property
    def is_empty(self) -> bool:
        """Whether there are neither pairs nor labels."""
        return self.n_pairs == 0 and self.labels is None

    @property
    def constrained(self) -> Bools:
        """Which samples are in a pair or have a label; the others are free."""
        touched = np.zeros(self.n_samples, dtype=bool)
        touched[self.must_link.ravel()] = True
        touched[self.cannot_link.ravel()] = True
        if self.labels is not None:
            touched |= self.labels >= 0
        return touched

    # Logic ---------------------------------------------------------------------------------

    def _facts(self) -> logic.Facts:
        """Return the certain part, which all logic is about."""
        must, cannot = self.must_link_belief == 1, self.cannot_link_belief == 1
        labelled = np.empty(0, dtype=np.intp)
        classes = class_of = labelled
        if self.labels is not None:
            labelled = np.flatnonzero(self.labels >= 0)
            classes, class_of = np.unique(self.labels[labelled], return_inverse=True)
        return logic.Facts(
            self.n_samples,
            self.must_link[must],
            self.cannot_link[cannot],
            self._must_link_row[must],
            self._cannot_link_row[cannot],
            labelled,
            class_of,
            classes,
        )

    def components(self) -> Ints:
        """Return the group of each sample under certain must-links and equal labels.

        Groups are numbered by their first sample.

        Examples
        --------
        >>> Constraints(5, must_link=[(1, 3)], labels=[-1, -1, 7, -1, 7]).components().tolist()
        [0, 1, 2, 1, 2]
        """
        return logic.components(self._facts())

    def closure(self) -> Closure:
        """Return everything that the certain pairs and labels entail.

        Raises
        ------
        ConflictError
            If they contradict each other: from a contradiction, anything follows.
        """
        facts = self._facts()
        component = logic.components(facts)
        feasible.raise_if_contradictory(facts, component)
        return self._closure(facts, component)

    def _closure(self, facts: logic.Facts, component: Ints) -> Closure:
        return Closure(self, logic.contract(facts, read_only(component)))

    def conflicts(self, limit: int | None = DEFAULT_PROOFS) -> list[Conflict]:
        """Return the contradictions among certain pairs and labels, each with its proof.

        A contradiction is a certain cannot-link inside a must-link group, or a pair of
        different labels that share one. Its proof is a shortest chain of must-links and equal
        labels. Finding all contradictions takes linear time; each chain takes a search from
        both its ends.

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
        facts = self._facts()
        found = logic.contradictions(facts, logic.components(facts))
        if limit == DEFAULT_PROOFS < found.total:  # cut off by nobody's wish
            message = (
                f"{found.total:,} contradictions were found; {limit:,} of them are proved here. "
                "Pass limit=None for all."
            )
            warnings.warn(message, UserWarning, stacklevel=2)
        return logic.explain(facts, found, limit)

    @property
    def n_conflicts(self) -> int:
        """The number of contradictions, counted without proofs."""
        facts = self._facts()
        return logic.contradictions(facts, logic.components(facts)).total

    def check(self, n_clusters: int | None = None) -> None:
        """Raise ConflictError if the certain pairs and labels cannot all hold.

        Parameters
        ----------
        n_clusters : int, default=None
            Also check whether this many clusters suffice, if none has to be used. The answer is
            exact for one and two clusters, and whenever every group of cannot-links has a
            member with fewer than `n_clusters`. For others the question is graph colouring: an
            error is always right, but silence is no promise.

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
        facts = self._facts()
        component = logic.components(facts)
        feasible.raise_if_contradictory(facts, component)
        if n_clusters is not None:
            feasible.check_feasible(facts, component, n_clusters)

    # Comparing with a clustering -----------------------------------------------------------

    def violated(self, labels: ArrayLike) -> Constraints:
        """Return the explicit pairs that a clustering violates, with their beliefs.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            The cluster of each sample. Every value is a cluster, -1 too.

        Examples
        --------
        >>> c = Constraints(4, must_link=[(0, 1), (2, 3)], cannot_link=[(0, 3)])
        >>> c.violated([0, 0, 0, 1])
        Constraints(n_samples=4, must_link=1, cannot_link=0)
        """
        must, cannot = self._violations(self._clusters(labels))
        return replace(
            self,
            must_link=self.must_link[must],
            must_link_belief=self.must_link_belief[must],
            cannot_link=self.cannot_link[cannot],
            cannot_link_belief=self.cannot_link_belief[cannot],
            labels=None,
        )

    def n_violated(self, labels: ArrayLike) -> int:
        """Count the pairs that a clustering violates, explicit and label-implied.

        An explicit pair that only repeats what the labels imply is counted once.
        """
        clusters = self._clusters(labels)
        must, cannot = self._violations(clusters)
        restated_must, restated_cannot = self._restated()
        explicit = int((must & ~restated_must).sum() + (cannot & ~restated_cannot).sum())
        return explicit + sum(implied.count_violated(self.labels, clusters))

    def satisfied(self, labels: ArrayLike) -> float:
        """Return the share of pairs that a clustering satisfies, weighted by belief.

        Counts explicit and label-implied pairs (belief 1); a pair that is both counts once.
        Without any pair the share is 1.
        """
        clusters = self._clusters(labels)
        must, cannot = self._violations(clusters)
        restated_must, restated_cannot = self._restated()
        total = float(sum(implied.count_implied(self.labels)))
        violated = float(sum(implied.count_violated(self.labels, clusters)))
        for wrong, restated, belief in (
            (must, restated_must, self.must_link_belief),
            (cannot, restated_cannot, self.cannot_link_belief),
        ):
            total += float(belief[~restated].sum())
            violated += float(belief[wrong & ~restated].sum())
        return 1.0 - violated / total if total else 1.0

    def _clusters(self, labels: ArrayLike) -> Ints:
        """Return the clusters of a clustering, numbered from 0."""
        array = np.asarray(labels)
        if array.shape != (self.n_samples,):
            message = (
                f"labels has shape {array.shape}, but the constraints are about {self.n_samples} "
                "samples. Pass one cluster per sample, or use constraints.restrict(indices)."
            )
            raise ValueError(message)
        return np.unique(array, return_inverse=True)[1]

    def _violations(self, clusters: Ints) -> tuple[Bools, Bools]:
        """Which must-links and which cannot-links a clustering violates."""
        must, cannot = clusters[self.must_link], clusters[self.cannot_link]
        return must[:, 0] != must[:, 1], cannot[:, 0] == cannot[:, 1]

    def _restated(self) -> tuple[Bools, Bools]:
        """Which must-links and which cannot-links the labels imply as well."""
        if self.labels is None:
            return np.zeros(len(self.must_link), bool), np.zeros(len(self.cannot_link), bool)
        must, cannot = self.labels[self.must_link], self.labels[self.cannot_link]
        return (
            (must[:, 0] == must[:, 1]) & (must[:, 0] >= 0),
            (cannot[:, 0] != cannot[:, 1]) & (cannot >= 0).all(axis=1),
        )

    # Pairs for methods ---------------------------------------------------------------------

    def to_matrix(self) -> csr_array:
        """Return a symmetric matrix: belief of must-links minus belief of cannot-links.

        Holds explicit and label-implied pairs.

        Raises
        ------
        TooLargeError
            Above 20 million pairs; `signed_pairs` gives a sparse stand-in.
        """
        n_pairs = self.n_pairs + sum(implied.count_implied(self.labels))
        if n_pairs > implied.MAX_PAIRS:
            message = (
                f"The matrix would hold {n_pairs} pairs, most of them implied by labels; at most "
                f"{implied.MAX_PAIRS} are listed. Use signed_pairs(), a sparse stand-in with the "
                "same closure."
            )
            raise TooLargeError(message)
        pairs, weights = self.signed_pairs(limit=implied.MAX_PAIRS)
        upper = coo_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(self.n_samples,) * 2)
        matrix = csr_array(upper + upper.T)
        matrix.eliminate_zeros()  # evidence that cancels out says nothing
        return matrix

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
        must, cannot = self._implied_pairs(limit)
        listed = []
        for pairs, belief, extra in (
            (self.must_link, self.must_link_belief, must),
            (self.cannot_link, self.cannot_link_belief, cannot),
        ):
            both = np.concatenate((pairs, extra))
            beliefs = np.concatenate((belief, np.ones(len(extra))))
            listed.append(unique_pairs(both, beliefs, self.n_samples))
        return (
            np.concatenate([part.pairs for part in listed]),
            np.concatenate([listed[0].belief, -listed[1].belief]),
        )

    def _implied_pairs(self, limit: int) -> tuple[Ints, Ints]:
        if self.labels is None or sum(implied.count_implied(self.labels)) <= limit:
            return implied.all_pairs(self.labels)
        return implied.sparse_pairs(self.labels, max(0, limit - self.n_pairs))

    def with_belief(self, belief: float) -> Constraints:
        """Return the same pairs with one belief for all of them.

        Labels are always certain. For a belief below 1 they become the pairs that they imply,
        if these are at most a million.
        """
        must, cannot, labels = self.must_link, self.cannot_link, self.labels
        if labels is not None and belief != 1:
            listed = self._with_listed_labels("with_belief turns labels into pairs")
            must, cannot, labels = *listed, None
        return Constraints(
            self.n_samples,
            must,
            cannot,
            must_link_belief=belief,
            cannot_link_belief=belief,
            labels=labels,
        )

    def _with_listed_labels(self, purpose: str) -> tuple[Ints, Ints]:
        """Return must-links and cannot-links, explicit ones first, then label-implied ones."""
        n_implied = sum(implied.count_implied(self.labels))
        if n_implied > MAX_LISTED:
            message = (
                f"{purpose}, but these labels imply {n_implied} pairs; the limit is {MAX_LISTED}. "
                "Keep the labels themselves, or choose pairs with signed_pairs()."
            )
            raise TooLargeError(message)
        must, cannot = implied.all_pairs(self.labels)
        return np.concatenate((self.must_link, must)), np.concatenate((self.cannot_link, cannot))

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
        names = None if ids is None else list(io.id_positions(ids, self.n_samples))
        must, cannot = self._with_listed_labels("to_csv writes pairs")
        beliefs = (self.must_link_belief, self.cannot_link_belief)
        blocks = []
        for link, pairs, belief in zip(("must", "cannot"), (must, cannot), beliefs, strict=True):
            padded = np.concatenate((belief, np.ones(len(pairs) - len(belief))))
            unique = unique_pairs(pairs, padded, self.n_samples)
            blocks.append((link, unique.pairs, unique.belief))
        io.write_csv(path, blocks, names)

    # Subsets -------------------------------------------------------------------------------

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
        chosen = as_indices(indices, self.n_samples)
        position = np.full(self.n_samples, -1, dtype=np.intp)
        position[chosen] = np.arange(chosen.size)
        must, cannot = position[self.must_link], position[self.cannot_link]
        must_inside, cannot_inside = (must >= 0).all(axis=1), (cannot >= 0).all(axis=1)
        return Constraints(
            chosen.size,
            must[must_inside],
            cannot[cannot_inside],
            must_link_belief=self.must_link_belief[must_inside],
            cannot_link_belief=self.cannot_link_belief[cannot_inside],
            labels=None if self.labels is None else self.labels[chosen],
        )

    def split(
        self, n_folds: int, random_state: RandomState = None
    ) -> Iterator[tuple[Constraints, Constraints]]:
        """Yield (train, test) constraints for cross-validation without leaks.

        The explicit pairs are dealt into folds at random. A test pair that the training part
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
        pairs = np.concatenate((self.must_link, self.cannot_link))
        # Evidence for and against one pair goes into one fold: it is one question.
        distinct, which = np.unique(pair_keys(pairs, self.n_samples), return_inverse=True)
        if distinct.size == 0 and n_folds >= 2:
            return iter([(self, Constraints(self.n_samples))] * n_folds)
        if not 2 <= n_folds <= distinct.size:
            message = (
                f"n_folds is {n_folds}, but it must be at least 2 and at most the number of "
                f"distinct explicit pairs ({distinct.size})."
            )
            raise ValueError(message)
        rng = check_random_state(random_state)
        fold = sampling.draw_folds(distinct.size, n_folds, rng)[which]
        return self._folds(pairs, fold, n_folds)

    def _folds(
        self, pairs: Ints, fold: Ints, n_folds: int
    ) -> Iterator[tuple[Constraints, Constraints]]:
        for k in range(n_folds):
            train = self.subset(fold != k)
            facts = train._facts()
            known = train._closure(facts, logic.components(facts))
            entailed = known.relation(pairs[:, 0], pairs[:, 1]) != 0
            yield train, replace(self.subset((fold == k) & ~entailed), labels=None)

    def subset(self, kept: Bools) -> Constraints:
        """Return some of the explicit pairs, must-links first, and the labels."""
        must, cannot = np.split(kept, [len(self.must_link)])
        return replace(
            self,
            must_link=self.must_link[must],
            must_link_belief=self.must_link_belief[must],
            cannot_link=self.cannot_link[cannot],
            cannot_link_belief=self.cannot_link_belief[cannot],
        )

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
        message = "Constraints are not an array. Use to_matrix() or signed_pairs()."
        raise TypeError(message)

    # Copies and pickles: numpy forgets that an array is read-only --------------------------

    def __copy__(self) -> Constraints:
        return self

    def __deepcopy__(self, memo: object) -> Constraints:
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._store(**state)
