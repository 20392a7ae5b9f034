"""Who the clusters are: in which features each differs from the other samples, and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.feature_extraction.text import CountVectorizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from linkwise._types import Floats
    from linkwise.report.features import Category, Features, Text
    from linkwise.report.inputs import Partition


FEATURE_BLOCK = 4_000_000  # numbers of the feature table worked on at a time: 32 MB
MOST_WORDS = 2_000  # of a column of texts, the most frequent ones
MANY_CLUSTERS = 6  # with more, fewer features of each are shown
TOP_FEATURES, TOP_FEATURES_OF_MANY = 10, 5
IN_WORDS = 3  # features of a cluster that are said in words
CLEAR = 0.3  # standard deviations of a difference that is said in words


class Difference(NamedTuple):
    """A feature in which a cluster differs from the other samples."""

    name: str
    difference: float  # of the means, in standard deviations over all samples
    inside: float
    outside: float
    kind: str = "number"  # or "date", or "share" of a category
    category: str = ""  # if it is a share
    is_word: bool = False  # then the category is a word, and the share is of the texts with it

    @property
    def is_clear(self) -> bool:
        """Whether the difference is worth a word."""
        return abs(self.difference) >= CLEAR

    @property
    def words(self) -> tuple[str, str]:
        """What is to be said before and after the name of the feature: "high", "mostly red"."""
        more = self.difference > 0
        if self.kind == "date":
            return "", "later" if more else "earlier"
        if self.kind == "share":
            how = "mostly" if self.inside > 0.5 else "more often"
            how = how if more else "rarely" if self.inside < 0.1 else "less often"
            return "", f"{how} with " if self.is_word else f"{how} "
        return "high" if more else "low", ""


class ClusterFeatures(NamedTuple):
    """The features in which each cluster differs most."""

    top: list[list[Difference]]
    n_constant: int
    missing: dict[str, int]  # number of samples without a value, of the features that lack some

    def in_words(self, cluster: int) -> list[Difference]:
        """Return the few differences of a cluster that say who it is."""
        return [one for one in self.top[cluster] if one.is_clear][:IN_WORDS]

    def missing_in_words(self, clusters: list[int]) -> dict[str, int]:
        """Return what is missing of the features that are said in words of some clusters."""
        said = {one.name for cluster in clusters for one in self.in_words(cluster)}
        return {name: n for name, n in self.missing.items() if name in said}


def cluster_features(features: Features, clusters: Partition) -> ClusterFeatures:
    """Find the features whose mean in a cluster is farthest from that of the other samples."""
    numbers, n_constant, missing = _number_differences(features, clusters)
    shares = [
        [[one] for one in _category_differences(category, clusters)]
        for category in features.categories
    ]
    shares += [_word_differences(one, clusters) for one in features.sentences]
    n_top = TOP_FEATURES if clusters.n_groups <= MANY_CLUSTERS else TOP_FEATURES_OF_MANY
    top = []
    for c in range(clusters.n_groups):
        found = [*numbers[c], *(one for share in shares for one in share[c])]
        found = [one for one in found if one.difference != 0]
        top.append(sorted(found, key=lambda one: -abs(one.difference))[:n_top])
    n_constant += sum(len(one.texts) < 2 for one in features.categories)
    missing |= {one.name: int((one.codes < 0).sum()) for one in features.categories}
    return ClusterFeatures(top, n_constant, {name: n for name, n in missing.items() if n})


def _number_differences(
    features: Features, clusters: Partition
) -> tuple[list[list[Difference]], int, dict[str, int]]:
    """Return the largest differences of each cluster, the number of constant columns, and gaps."""
    blocks = [_block_means(block, clusters) for block in _blocks(features.values)]
    inside, outside, gap, varies, n_missing = (
        np.concatenate(part, axis=-1) for part in zip(*blocks, strict=True)
    )
    kinds = ["date" if f in features.dates else "number" for f in range(len(features.names))]
    found = [
        [
            Difference(features.names[f], gap[c, f], inside[c, f], outside[c, f], kinds[f])
            for f in np.argsort(-abs(gap[c]), kind="stable")[:TOP_FEATURES].tolist()
        ]
        for c in range(clusters.n_groups)
    ]
    missing = dict(zip(features.names, n_missing.astype(np.intp).tolist(), strict=True))
    return found, int((~varies).sum()), missing


def _category_differences(category: Category, clusters: Partition) -> list[Difference]:
    """Return for each cluster the category whose share differs most from that outside."""
    k, m = clusters.n_groups, max(len(category.texts), 1)
    known = category.codes >= 0
    cells = clusters.codes[known] * m + category.codes[known]
    counts = np.bincount(cells, minlength=k * m).reshape(k, m).astype(np.float64)
    size, total = counts.sum(axis=1, keepdims=True), counts.sum(axis=0)
    inside, outside = _ratio(counts, size), _ratio(total - counts, total.sum() - size)
    share = total / max(total.sum(), 1.0)
    gap = np.nan_to_num(_ratio(inside - outside, np.sqrt(share * (1 - share))))
    # Of two categories that say the same, the one that is more frequent here.
    best = (np.abs(gap) + 1e-9 * (gap > 0)).argmax(axis=1)
    texts = category.texts or [""]
    return [
        Difference(
            category.name, gap[c, at], inside[c, at], outside[c, at], "share", category=texts[at]
        )
        for c, at in enumerate(best.tolist())
    ]


def _word_differences(text: Text, clusters: Partition) -> list[list[Difference]]:
    """Return for each cluster the words that more of its texts have than of the others."""
    k, n = clusters.n_groups, clusters.codes.size
    n_words = min(MOST_WORDS, max(FEATURE_BLOCK // k, 1))
    try:
        vectorizer = CountVectorizer(binary=True, min_df=2, max_features=n_words)
        has_word = vectorizer.fit_transform(text.texts)
    except ValueError:  # no word is there twice
        return [[] for _ in range(k)]
    words = vectorizer.get_feature_names_out().tolist()
    members = csr_array((np.ones(n), (clusters.codes, np.arange(n))), (k, n))
    counts = np.asarray((members @ csr_array(has_word)).toarray(), dtype=np.float64)
    size, total = clusters.sizes[:, None].astype(np.float64), counts.sum(axis=0)
    inside, outside = _ratio(counts, size), _ratio(total - counts, n - size)
    share = total / n
    gap = np.nan_to_num(_ratio(inside - outside, np.sqrt(share * (1 - share))))
    return [
        [
            Difference(
                text.name,
                gap[c, at],
                inside[c, at],
                outside[c, at],
                "share",
                words[at],
                is_word=True,
            )
            for at in np.argsort(-gap[c], kind="stable")[:TOP_FEATURES].tolist()
            if gap[c, at] > 0  # what a cluster has, not what it lacks
        ]
        for c in range(k)
    ]


def _blocks(values: Any) -> Iterator[Floats]:
    """Yield some columns at a time, dense: a copy of a large table would be as large."""
    n, d = values.shape
    width = max(1, FEATURE_BLOCK // n)
    columns = values.tocsc() if issparse(values) else values
    for start in range(0, max(d, 1), width):
        part = columns[:, start : start + width]
        yield np.asarray(part.toarray() if issparse(part) else part, dtype=np.float64)


def _block_means(block: Floats, clusters: Partition) -> tuple[Any, ...]:
    """Means of columns in and outside each cluster, their gap, which vary, and what is missing."""
    known = np.isfinite(block)
    scale = np.abs(block, where=known, out=np.zeros_like(block)).max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    scaled = np.where(known, block, 0.0) / scale
    codes, k = clusters.codes, clusters.n_groups
    members = csr_array((np.ones(codes.size), (codes, np.arange(codes.size))), (k, codes.size))
    sums, counts = members @ scaled, members @ known.astype(np.float64)
    total, n_known = sums.sum(axis=0), counts.sum(axis=0)
    mean = _ratio(total, n_known)
    centred = np.where(known, scaled - mean, 0.0)
    deviation = np.sqrt(np.nan_to_num(_ratio((centred**2).sum(axis=0), n_known)))
    deviation[deviation < 1e-12] = 0.0  # of a constant column only rounding is left
    # Around the mean, so that subtracting a cluster from the total loses nothing.
    moved = members @ centred
    inside = mean + _ratio(moved, counts)
    outside = mean + _ratio(moved.sum(axis=0) - moved, n_known - counts)
    varies = deviation > 0
    gap = np.divide(inside - outside, deviation, out=np.zeros(inside.shape), where=varies)
    # Without a single value in the cluster, or outside, there is nothing to compare.
    return inside * scale, outside * scale, np.nan_to_num(gap), varies, codes.size - n_known


def _ratio(a: Floats, b: Floats) -> Floats:
    ratio: Floats = np.divide(a, b, out=np.full(a.shape, np.nan), where=b > 0)
    return ratio
