"""Items: what is shown of a sample. Values leave here as text, images as bytes of a known type."""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linkwise._values import read_dates, read_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from linkwise._types import Floats

KINDS = ("row", "text", "image", "series", "point")
MAX_TEXT = 4_000  # letters of a value; the whole is there on demand
MAX_WHOLE = 2_000_000
SUMMARY = 110  # letters of a few words about a sample
MAX_FIELDS = 200
MAX_SERIES = 2_000  # values of a series
MAX_IMAGE = 20_000_000  # bytes
MAX_WHOLE_NUMBER = 1e15  # up to here a whole number is written with all its digits
LONG = 1_000_000  # numbers from here on may be codes
SOME = 5_000  # values that tell the kind of a column
N_BARS = 24  # features of a bare point
NORMAL_QUARTILES = 1.349  # distance of the quartiles of a normal distribution
CODE = re.compile(r"\D*0\d")  # no amount begins so, but telephone numbers and postal codes do
MAGIC = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


class Media(NamedTuple):
    """An image as bytes, and its type."""

    content: bytes
    type: str


class Quantity(NamedTuple):
    """A column of numbers, amounts of money or dates, as numbers."""

    kind: str  # "number", "amount" or "date"
    values: Floats  # NaN where missing
    usual: float  # what a difference is measured by: see `_usual_difference`


class MissingImageError(Exception):
    """There is no image to show; the message says why."""


@dataclass(frozen=True)
class Items:
    """The samples as a person sees them.

    Parameters
    ----------
    names : sequence of str
        Identifiers, in the order of the data.
    kind : {"row", "text", "image", "series", "point"}
        What a sample is.
    columns : mapping of str to sequence
        Everything that the table holds, also what clustering does not use.
    features : ndarray of shape (n_samples, n_features), default=None
        Numbers, for series and bare points, and images of pixels.
    feature_names : sequence of str, default=()
        Their names.
    text : str, default=None
        Column with the text.
    image : str, default=None
        Column with the paths of images, or ``WIDTHxHEIGHT`` if the features are pixels.
    root : Path, default=None
        Folder that paths of images start from. Nothing outside of it is read.
    """

    names: Sequence[str]
    kind: str = "row"
    columns: Mapping[str, Any] = field(default_factory=dict)
    features: Any = None
    feature_names: Sequence[str] = ()
    text: str | None = None
    image: str | None = None
    root: Path | None = None

    def __len__(self) -> int:
        return len(self.names)

    def cards(self, samples: Sequence[int], *, whole: bool = False) -> list[dict[str, Any]]:
        """Return what is shown of samples that stand side by side."""
        bars = self._bars(samples) if self.kind == "point" else {}
        limit = MAX_WHOLE if whole else MAX_TEXT
        return [self._card(sample, limit) | bars.get(sample, {}) for sample in samples]

    def _card(self, sample: int, limit: int) -> dict[str, Any]:
        card: dict[str, Any] = {"index": sample, "id": _cut(str(self.names[sample]), 300)}
        special = {self.text, self.image}
        shown = [name for name in self.columns if name not in special][:MAX_FIELDS]
        card["fields"] = [
            [name, *_value(self.columns[name][sample], limit), self._amount(name, sample)]
            for name in shown
        ]
        if self.text is not None:
            card["text"], card["cut"] = _value(self.columns[self.text][sample], limit)
        if self.image is not None:
            card["media"] = f"/api/items/{sample}/media"
        if self.kind == "series":
            card["series"] = _finite(self.features[sample][:MAX_SERIES])
        return card

    def _bars(self, samples: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the features in which the samples differ most, in standard deviations."""
        rows = _dense(self.features[list(samples)])
        center, spread = self._scale
        scaled = (rows - center) / spread
        differ = scaled.max(axis=0) - scaled.min(axis=0)
        chosen = np.sort(np.argsort(-differ, kind="stable")[:N_BARS])
        names = [str(self.feature_names[k]) for k in chosen.tolist()]
        return {
            sample: {
                "bars": _finite(scaled[row, chosen]),
                "values": [f"{value:.4g}" for value in rows[row, chosen]],
                "features": names,
            }
            for row, sample in enumerate(samples)
        }

    @cached_property
    def _scale(self) -> tuple[Floats, Floats]:
        some = _dense(self.features[:: max(1, len(self) // SOME)])
        spread = some.std(axis=0)
        return some.mean(axis=0), np.where(spread > 0, spread, 1.0)

    @cached_property
    def quantities(self) -> dict[str, Quantity]:
        """The columns of numbers, money and dates."""
        found = {name: _quantity(column) for name, column in self.columns.items()}
        return {name: one for name, one in found.items() if one is not None}

    def _amount(self, name: str, sample: int) -> float | None:
        """Return a value in usual differences of its column, if it is a quantity."""
        if name not in self.quantities:
            return None
        _, values, usual = self.quantities[name]
        return float(values[sample] / usual) if np.isfinite(values[sample]) else None

    @cached_property
    def dates(self) -> list[str]:
        """Columns of dates."""
        return [name for name, one in self.quantities.items() if one.kind == "date"]

    def summary(self, sample: int) -> str:
        """Return a few words about a sample, for lists and the map: words before numbers."""
        if self.text is not None:
            return _cut(_value(self.columns[self.text][sample], 120)[0], 90)
        names = [name for name in self.columns if name != self.image]
        numbers = [
            name
            for name in names
            if name in self.quantities and self.quantities[name].kind == "number"
        ]
        values = {name: _value(self.columns[name][sample], 40)[0] for name in names}
        words = [values[name] for name in names if name not in numbers]
        known = [f"{name} {values[name]}" for name in numbers if values[name]]
        # Three of each kind, if there are so many: often the numbers tell more than the name.
        said = [word for word in words if word]
        return _cut(", ".join([*said[:3], *known[:3], *said[3:6]]), SUMMARY)

    def find(self, text: str, limit: int = 20) -> list[int]:
        """Return samples whose id, or else any value, contains a text; equal ids first."""
        wanted = text.casefold().strip()
        if not wanted:
            return []
        ids = [str(name).casefold() for name in self.names]
        found = [k for k, name in enumerate(ids) if name == wanted]
        found += [k for k, name in enumerate(ids) if wanted in name and name != wanted][:limit]
        for column in self.columns.values():
            if len(found) >= limit:
                break
            near = (k for k in range(len(self)) if wanted in str(column[k]).casefold())
            found += [k for k, _ in zip(near, range(limit), strict=False)]
        return list(dict.fromkeys(found))[:limit]

    # Images --------------------------------------------------------------------------------

    def media(self, sample: int) -> Media:
        """Return the image of a sample; MissingImageError if there is none that can be shown."""
        if self.image is None:
            raise MissingImageError("These data have no images.")
        if self.image not in self.columns:
            width, height = (int(side) for side in self.image.split("x"))
            return Media(_png(_dense(self.features[sample]).reshape(height, width)), "image/png")
        return self._file(str(self.columns[self.image][sample]))

    def _file(self, text: str) -> Media:
        root = (self.root or Path()).resolve()
        try:
            path = (root / text).resolve()
            if not path.is_relative_to(root) or not path.is_file():
                raise MissingImageError("There is no such image.")
            if path.stat().st_size > MAX_IMAGE:
                raise MissingImageError(f"The image has more than {MAX_IMAGE // 1_000_000} MB.")
            content = path.read_bytes()
        except (OSError, ValueError) as error:  # a NUL in the name, no right to read
            raise MissingImageError("The image cannot be read.") from error
        return Media(content, _image_type(content))


def _image_type(content: bytes) -> str:
    """Return the type by the first bytes, whatever the file is called; never SVG, which can act."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    for magic, name in MAGIC.items():
        if content.startswith(magic):
            return name
    raise MissingImageError("Images are PNG, JPEG, WebP or GIF.")


def _png(grey: Floats) -> bytes:
    """Write a grey image: dark on light, as ink on paper."""
    low, high = float(grey.min()), float(grey.max())
    ink = (grey - low) / (high - low if high > low else 1.0)
    rows = np.zeros((grey.shape[0], grey.shape[1] + 1), dtype=np.uint8)  # a filter byte each
    rows[:, 1:] = np.rint(255 * (1 - ink))
    header = struct.pack(">IIBBBBB", grey.shape[1], grey.shape[0], 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )


# Values ------------------------------------------------------------------------------------


def _value(value: Any, limit: int) -> tuple[str, int]:
    """Return a value as text, and how many letters were left out."""
    if value is None or value != value:  # noqa: PLR0124  (NaN)
        return "", 0
    if isinstance(value, float | np.floating):
        number = float(value)
        is_whole = abs(number) < MAX_WHOLE_NUMBER and number.is_integer()
        value = f"{number:.0f}" if is_whole else f"{number:.6g}"
    text = str(value)
    return text[:limit], max(0, len(text) - limit)


def _quantity(column: Sequence[Any]) -> Quantity | None:
    """Return a column as numbers; None if it holds anything else, or the same everywhere."""
    some = column[:: max(1, len(column) // SOME)]
    if all(isinstance(value, int | float) for value in some):
        kind, values = "number", _as_numbers(column)
        kind = "" if _are_codes(values) else kind
    else:
        kind, values = _written_quantity(some)
        if kind and len(some) < len(column):
            kind, values = _written_quantity(column)
    known = values[np.isfinite(values)]
    usual = _usual_difference(known) if kind and known.size else 0.0
    return Quantity(kind, values, usual) if usual > 0 else None


def _usual_difference(known: Floats) -> float:
    """Return the standard deviation, or that of the middle half if it is smaller.

    A few large sums would make all others seem alike.
    """
    low, high = np.quantile(known, [0.25, 0.75])
    middle = float(high - low) / NORMAL_QUARTILES
    spread = float(known.std())
    return min(middle, spread) if middle > 0 else spread


def _are_codes(values: Floats) -> bool:
    """Whether numbers are long, whole and mostly different: of telephones, accounts, articles."""
    known = values[np.isfinite(values)]
    if not known.size or (known != np.round(known)).any() or np.median(known) < LONG:
        return False
    return bool(np.unique(known).size > known.size / 2)


def _as_numbers(column: Sequence[Any]) -> Floats:
    return np.array([one if isinstance(one, int | float) else np.nan for one in column], np.float64)


def _written_quantity(column: Sequence[Any]) -> tuple[str, Floats]:
    """Return the kind and the numbers of a column of texts; no kind if it is neither."""
    texts = [_value(value, MAX_TEXT)[0].strip() for value in column]
    is_code = any(CODE.match(text) for text in texts)
    amounts = None if is_code else read_numbers(texts, decimal=".", prefers_comma=False)
    if amounts is not None and amounts.how:  # plain digits that are kept as text are codes, too
        return "amount", amounts.values
    if (dates := read_dates(texts)) is not None:
        return "date", dates.values
    return "", np.empty(0)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _dense(rows: Any) -> Floats:
    dense = rows.toarray() if hasattr(rows, "toarray") else rows
    return np.asarray(dense, dtype=np.float64)


def _finite(values: Any) -> list[float | None]:
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in _dense(values)]
