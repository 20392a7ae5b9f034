"""The data sets known by name: their sizes, what they are, and how they are obtained."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from linkwise.datasets import generators, preprocess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from linkwise._types import AnyArray

    Change = Callable[..., tuple[AnyArray, AnyArray]]


@dataclass(frozen=True)
class BuiltIn:
    """Part of scikit-learn: the name of its loader."""

    loader: str


@dataclass(frozen=True)
class Made:
    """Made on the spot, by a function of `random_state`."""

    make: Callable[..., tuple[Any, Any]]


@dataclass(frozen=True)
class Derived:
    """Another data set, changed."""

    base: str
    change: Change


@dataclass(frozen=True)
class OpenML:
    """A data set of OpenML, and what turns it into the papers' one.

    Nominal features become numbers: what their values say if these are numbers, else what `codes`
    says, else their place in the declaration.
    """

    data_id: int
    name: str
    prepare: Change | None = None
    classes: tuple[str, ...] = ()
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    # Only numbers: then the fast parser may be used, which leaves nominal values as they are.
    numeric: bool = False


@dataclass(frozen=True)
class Stored:
    """A file ``NAME.npz`` in the data folder, or else OpenML's."""

    openml: OpenML | None = None


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue. `class_sizes` are in the order of the labels."""

    name: str
    class_sizes: tuple[int, ...]
    n_features: int | None  # None: a graph
    how: BuiltIn | Made | Derived | Stored
    about: str
    papers: str = ""

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return sum(self.class_sizes)

    @property
    def n_clusters(self) -> int:
        """Number of classes."""
        return len(self.class_sizes)

    @property
    def description(self) -> str:
        """What the data are and which papers use them."""
        return f"{self.about} Used in {self.papers}." if self.papers else self.about


def _hepatitis_codes() -> dict[str, dict[str, float]]:
    """Return UCI's numbers for what OpenML writes as words; they are not the same everywhere."""
    one_is_no = ("STEROID", "LIVER_BIG", "HISTOLOGY")
    two_is_no = (
        *("ANTIVIRALS", "FATIGUE", "MALAISE", "ANOREXIA", "LIVER_FIRM", "SPLEEN_PALPABLE"),
        *("SPIDERS", "ASCITES", "VARICES"),
    )
    codes = {"SEX": {"female": 1.0, "male": 2.0}}
    codes |= {name: {"no": 1.0, "yes": 2.0} for name in one_is_no}
    return codes | {name: {"no": 2.0, "yes": 1.0} for name in two_is_no}


GLASS = (
    *("build wind float", "build wind non-float", "vehic wind float", "vehic wind non-float"),
    *("containers", "tableware", "headlamps"),
)
ZOO = ("mammal", "bird", "reptile", "fish", "amphibian", "insect", "invertebrate")
MNIST_SIZES = (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)
DIGITS_SIZES = (178, 182, 177, 183, 181, 182, 181, 179, 174, 180)

COSC = "Rangapuram and Hein 2012"
SRCP = "Fu et al. 2011"
SIGNED = "Wacquet et al. 2013"
LABELS = "Wang et al. (labels against pairwise constraints)"
XU = "Xu et al. 2005"

BUILT_IN = (
    Entry("iris", (50, 50, 50), 4, BuiltIn("load_iris"), "Flowers of three species.", XU),
    Entry(
        "wine",
        (59, 71, 48),
        13,
        BuiltIn("load_wine"),
        "Chemical analysis of wines of three growers.",
        f"{SRCP}; {SIGNED}",
    ),
    Entry(
        "wdbc",
        (212, 357),
        30,
        BuiltIn("load_breast_cancer"),
        "Breast Cancer Wisconsin (Diagnostic): cell nuclei of malignant and benign tumours.",
        f"{SRCP}; {LABELS}",
    ),
    Entry(
        "digits",
        DIGITS_SIZES,
        64,
        BuiltIn("load_digits"),
        "Handwritten digits of 8 x 8 pixels, grey values 0 to 16.",
    ),
    Entry(
        "digits_extended",
        tuple(9 * size for size in DIGITS_SIZES),
        64,
        Derived("digits", partial(generators.shifted_images, shape=(8, 8))),
        "The digits, and each of them moved by one pixel in 8 directions, as bytes.",
    ),
    Entry(
        "iris2",
        (50, 50),
        4,
        Derived("iris", partial(preprocess.without_class, left_out=0)),
        "Iris without setosa, the class that is far from both others.",
        LABELS,
    ),
    Entry(
        "wine2",
        (59, 71),
        13,
        Derived("wine", partial(preprocess.without_class, left_out=2)),
        "Wine without its third class, as the text of the paper says; see wine119.",
        LABELS,
    ),
    Entry(
        "wine119",
        (71, 48),
        13,
        Derived("wine", partial(preprocess.without_class, left_out=0)),
        "Wine without its first class: the one choice that leaves the 119 samples which the table "
        "of the paper counts, while its text says that the third class was left out.",
        LABELS,
    ),
)

MADE = (
    Entry(
        "xor",
        (20, 20),
        2,
        Made(generators.make_xor),
        "Four tight corners of a square, opposite ones belong together.",
        XU,
    ),
    Entry("moons", (100, 100), 2, Made(generators.make_moons), "Two interleaving half circles."),
    Entry("circles", (100, 100), 2, Made(generators.make_circles), "A circle around another."),
    Entry("spirals", (200, 200), 2, Made(generators.make_spirals), "Two interleaving spirals."),
    Entry(
        "mixture",
        (250, 75, 75, 100),
        2,
        Made(generators.make_mixture),
        "Gaussians of which a normalised cut splits one and puts two together. The paper shows "
        "such data but gives no parameters; these are ours.",
        f"{COSC} (Figure 2)",
    ),
    Entry(
        "block_model",
        (100, 100, 100),
        None,
        Made(generators.make_block_model),
        "A graph: stochastic block model, edges with probability 0.15 inside and 0.02 between.",
    ),
    Entry(
        "signed_block_model",
        (100, 100, 100),
        None,
        Made(generators.make_signed_block_model),
        "A signed graph: friends in a block, foes between blocks, 10 % of the signs wrong. "
        "See signed_parts for how to cluster it.",
    ),
)

STORED = (
    Entry(
        "hepatitis",
        (13, 67),
        19,
        Stored(OpenML(55, "hepatitis", preprocess.complete_cases, codes=_hepatitis_codes())),
        "Patients who died and who lived: the 80 of 155 without a missing value.",
        f"{SIGNED}; {LABELS}",
    ),
    Entry(
        "ionosphere",
        (126, 225),
        34,
        Stored(OpenML(59, "ionosphere")),
        "Radar returns, bad and good. The second feature is 0 everywhere; it is kept.",
        f"{SRCP}; {SIGNED}; {LABELS}",
    ),
    Entry(
        "dermatology",
        (112, 61, 72, 49, 52, 20),
        34,
        Stored(OpenML(35, "dermatology", preprocess.median_filled)),
        "Six diseases of the skin. The 8 unknown ages are set to the median, 35, since the paper "
        "counts all 366 samples and does not say what it did.",
        SIGNED,
    ),
    Entry(
        "dermatology_cc",
        (111, 60, 71, 48, 48, 20),
        34,
        Stored(OpenML(35, "dermatology", preprocess.complete_cases)),
        "Dermatology without the 8 samples of unknown age.",
    ),
    Entry(
        "glass",
        (70, 76, 17, 13, 9, 29),
        9,
        Stored(OpenML(41, "glass", classes=GLASS)),
        "Six kinds of glass.",
        SIGNED,
    ),
    Entry(
        "glass2",
        (163, 51),
        9,
        Derived("glass", partial(preprocess.grouped, groups=(0, 0, 0, 1, 1, 1))),
        "Glass of windows against all other. The paper says that its glass has two classes, not "
        "which; this is the division that UCI's description makes.",
        LABELS,
    ),
    Entry(
        "ecoli",
        (143, 77, 2, 2, 35, 20, 5, 52),
        7,
        Stored(OpenML(39, "ecoli")),
        "Proteins at eight places of a cell.",
        SIGNED,
    ),
    Entry(
        "sonar", (111, 97), 60, Stored(OpenML(40, "sonar")), "Echoes of mines and of rocks.", COSC
    ),
    Entry(
        "spambase",
        (2528, 1679),
        57,
        Stored(OpenML(44, "spambase", preprocess.unique_rows)),
        "Mail and spam: the 4207 different feature vectors of 4601, each with its first label.",
        COSC,
    ),
    Entry(
        "usps",
        (1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        256,
        Stored(OpenML(41082, "USPS", preprocess.unit_range, numeric=True)),
        "Handwritten digits of 16 x 16 pixels, grey values 0 to 1, training and test set.",
        COSC,
    ),
    Entry(
        "usps0",
        (1553, 7745),
        256,
        Derived("usps", partial(preprocess.one_against_rest, one=0)),
        "USPS, the digit 0 against all others: a very unbalanced problem.",
        COSC,
    ),
    Entry(
        "mnist",
        MNIST_SIZES,
        784,
        Stored(OpenML(554, "mnist_784", preprocess.as_bytes, numeric=True)),
        "Handwritten digits of 28 x 28 pixels as bytes, training and test set.",
        COSC,
    ),
    Entry(
        "mnist_extended",
        tuple(9 * size for size in MNIST_SIZES),
        784,
        Derived("mnist", partial(generators.shifted_images, shape=(28, 28))),
        "MNIST, and each image moved by one pixel in 8 directions: 494 MB of bytes.",
        COSC,
    ),
    Entry(
        "soybean_small",
        (10, 10, 10, 17),
        35,
        Stored(),
        "Four diseases of soybeans. OpenML has the large set of 683 samples only.",
        XU,
    ),
    Entry(
        "zoo",
        (41, 20, 5, 13, 4, 8, 10),
        16,
        Stored(OpenML(62, "zoo", classes=ZOO, drop=("animal",))),
        "Seven kinds of animals, without their names.",
        SRCP,
    ),
    Entry(
        "yale_32x32",
        (11,) * 15,
        1024,
        Stored(),
        "Faces of 15 people, 32 x 32 pixels, as cropped by Deng Cai.",
        SIGNED,
    ),
    Entry(
        "orl_32x32",
        (10,) * 40,
        1024,
        Stored(),
        "Faces of 40 people, 32 x 32 pixels, as cropped by Deng Cai.",
        SIGNED,
    ),
    Entry(
        "mit8_gist",
        (360, 328, 260, 308, 374, 410, 292, 356),
        512,
        Stored(),
        "Photographs of eight kinds of scenes, as GIST descriptors. The paper has the same images, "
        "but visual words of SIFT descriptors and a spatial Markov kernel.",
        SRCP,
    ),
    Entry(
        "corel15_gist",
        (100,) * 15,
        512,
        Stored(),
        "Photographs of 15 subjects of the Corel collection, as GIST descriptors: not the 15 "
        "subjects of the paper, and other features.",
        SRCP,
    ),
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in (*BUILT_IN, *MADE, *STORED)}

# Of the content of stored data, as `preprocess.fingerprint` computes it.
FINGERPRINTS = {
    "hepatitis": "7213b992b4b80df962b550922a12529e05c2db785d6f471168680bbde1a2c683",
    "ionosphere": "29cea0eac707e2d0055b74190bb143498702e7ddbfab370b55e7f6e0ecfdfa8c",
    "dermatology": "57305e95d4624e710c713d3a72cb81ae0701989b01d56e5e0894f5d66aed5210",
    "dermatology_cc": "9c05fbc117324eaa741800f36bfe99e2f44f3e0c1ef7ad69335b3d8aa0f4340b",
    "glass": "d123810cbef7d53e357788f4031fbe9a2d5cf2fa3d84a4f93834464c60560a86",
    "ecoli": "ccfdc88ff9302a91c0c1efcde6afd09e59ca236e69d5f588ef8270f06991b492",
    "sonar": "3827e7a4581ba1d5e275dc3a2d30744f9641b0b9ebc7a742b2c9dadfdcc4f89f",
    "spambase": "8a34bc04d46145f0b4d6747fe733853a550cd6137f04bc8782425f5aba84261f",
    "usps": "961cdf488653d87df90191b35534a9e86e3b4e3c7445818b7628d7db586bc442",
    "mnist": "630a5f4cff18cb4d253954c5aa25623fecf22cb0c46f3990b9a288c7387a697a",
    "soybean_small": "a5bfb4dbdbe0f6d2acd7efb744eadbfea40e556e7deafcc50bf67b7e7ed3ab9f",
    "zoo": "17f53d73d1293467e04ec902be1a920263502135545732e62787f241ba6d9208",
    "yale_32x32": "01396ade2a54e7a1718c9794033b20684062e3916711777147a9430dcc282780",
    "orl_32x32": "b5730be8be2abe9af9b554955c1408128117659c34813a38555f18b64d29b115",
}

# Names that the papers use.
ALIASES = {
    "breast_cancer": "wdbc",
    "corel": "corel15_gist",
    "mnist_ext": "mnist_extended",
    "orl": "orl_32x32",
    "scene": "mit8_gist",
    "soybean": "soybean_small",
    "spam": "spambase",
    "yale": "yale_32x32",
}
