"""Text as people write it -> numbers: money, thousands, decimal commas, units, dates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from linkwise._types import Floats

# What people write for "not known" among numbers.
PLACEHOLDERS = frozenset(
    {"", "-", "--", "?", ".", "na", "n/a", "nan", "null", "none", "<na>", "unknown", "missing"}
)
FEW_CATEGORIES, MANY_CATEGORIES = 10, 100
WORD, SENTENCE = re.compile(r"[^\W\d_]{2,}"), 3  # a first and a last name are two words
CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
AMOUNT = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-]?)\s*{CURRENCY}?\s*(?P<sign2>[+-]?)(?P<digits>\d[\d.,'\s]*)"
    rf"(?P<power>[eE][+-]?\d+)?\s*(?:{CURRENCY}|%)?(?P<close>\))?"
)
# Thousands are groups of three digits; the other mark stands before the fraction.
POINT = re.compile(r"\d{1,3}(?:[,'\s]\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?")
COMMA = re.compile(r"\d{1,3}(?:[.'\s]\d{3})+(?:,\d+)?|\d+(?:,\d*)?")

# What follows an amount; other letters may as well make it a code (101ctrl) or a time (9 am).
UNITS = (
    "kg|g|mg|t|lbs?|oz|km|m|cm|mm|mi|miles?|ft|in|km/h|mph|m/s|l|ml|gal|"
    "m2|m²|m³|km²|ha|sqm|sqft|kW|W|kWh|V|A|Hz|MHz|GHz|kB|MB|GB|TB|"
    "s|sec|ms|min|h|hrs?|hours?|days?|weeks?|months?|years?|yrs?|°|°C|°F|pcs|px|pts?|kcal|cal|bpm"
)
UNIT = re.compile(rf"(?P<amount>.*\d)\s*(?:{UNITS})")  # 12 kg, 12kg, 9 km/h

TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:Z|[+-]\d{2}:?\d{2}|[AaPp][Mm])?)?"
ISO_DATE = re.compile(rf"\d{{4}}([-/.])\d{{1,2}}\1\d{{1,2}}{TIME}")
NUMBER_DATE = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(?:\d{{4}}|\d{{2}}){TIME}")
NAMED_DATE = re.compile(
    rf"(?:\d{{1,2}}[ .-]+[A-Za-z]{{3,9}}|[A-Za-z]{{3,9}} \d{{1,2}},?)[ .-]+\d{{4}}{TIME}"
)
DAY = 86_400.0  # seconds
MONTHS = 12


class Numbers(NamedTuple):
    """A column of text as numbers, NaN where missing, and how it was read."""

    values: Floats
    how: str = ""  # for a note; empty if the text was plain numbers


def most_categories(n_rows: int) -> int:
    """Return how many different texts a column of categories has at most; others are texts."""
    return min(max(FEW_CATEGORIES, n_rows // 10), MANY_CATEGORIES)


def are_sentences(texts: list[str]) -> bool:
    """Whether most cells that are given hold several words: text that people wrote, not names.

    >>> are_sentences(["mug with a lid", "red and blue"]), are_sentences(["Ann Lee", "Bo Li"])
    (True, False)
    """
    n_words = [len(WORD.findall(text)) for text in texts if text]
    return 2 * sum(n >= SENTENCE for n in n_words) > len(n_words)


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty: None, NaN, NaT or the NA of pandas; no word or list."""
    if hasattr(value, "__len__") and not isinstance(value, str):
        return False  # an array is compared entry by entry
    # The NA of pandas refuses to be compared.
    return bool(value is None or str(value) == "<NA>" or value != value)  # noqa: PLR0124  (NaN)


def is_given(text: str) -> bool:
    """Whether a cell among numbers holds something, and no word for "not known"."""
    return text.strip().lower() not in PLACEHOLDERS


# Numbers -----------------------------------------------------------------------------------


def plain_numbers(texts: list[str]) -> Floats:
    """Return what Python reads as a number; NaN elsewhere."""
    import pandas  # noqa: PLC0415  (late: who has such a column has it)

    parsed = pandas.to_numeric(pandas.Series(texts, dtype=object), errors="coerce")
    return np.asarray(parsed, dtype=np.float64)


def read_numbers(texts: list[str], *, decimal: str, prefers_comma: bool) -> Numbers | None:
    """Return a column of text as numbers, or None if it holds something else.

    `prefers_comma` decides whether 1,234 is a fraction, where the column does not tell.
    """
    given = [row for row, text in enumerate(texts) if is_given(text)]
    if not given:
        return None
    values = plain_numbers(texts)
    if not np.isnan(values[given]).any():
        return Numbers(values)
    plain = _without_unit([texts[row] for row in given])
    amounts = [match for match in map(AMOUNT.fullmatch, plain) if match is not None]
    if len(amounts) < len(given):
        return None
    digits = [match["digits"].strip() for match in amounts]
    by_point = all(POINT.fullmatch(text) for text in digits)
    by_comma = all(COMMA.fullmatch(text) for text in digits)
    if not by_point and not by_comma:
        return None
    comma = by_comma and (not by_point or decimal == "," or prefers_comma)
    values = np.full(len(texts), np.nan)  # those of pandas 3 cannot be written to
    for row, match in zip(given, amounts, strict=True):
        values[row] = _amount(match, "," if comma else ".")
    example = next(row for row in given if np.isnan(plain_numbers([texts[row]])[0]))
    return Numbers(values, f"{texts[example]!r} is read as {values[example]:.15g}")


def _without_unit(texts: list[str]) -> list[str]:
    """Return amounts without their unit, if all have the same one."""
    found = [UNIT.fullmatch(text.strip()) for text in texts]
    units = {m.string[m.end("amount") :].strip() if m is not None else "" for m in found}
    if len(units) > 1 or "" in units:
        return texts
    return [match["amount"] for match in found if match is not None]


def _amount(match: re.Match[str], mark: str) -> float:
    digits = re.sub(r"[,'\s]" if mark == "." else r"[.'\s]", "", match["digits"])
    is_negative = "-" in match["sign"] + match["sign2"] or match["open"] is not None
    number = float(digits.replace(",", ".") + (match["power"] or ""))
    return -number if is_negative else number


# Dates -------------------------------------------------------------------------------------


def read_dates(texts: list[str]) -> Numbers | None:
    """Return a column of dates as days since the first, or None if it holds something else."""
    given = [row for row, text in enumerate(texts) if is_given(text)]
    if not given:
        return None
    matches = [NUMBER_DATE.fullmatch(texts[row]) for row in given]
    options: dict[str, Any] = {"format": "mixed"}
    order = ""
    if all(matches):
        first, second = (
            {int(match[group]) for match in matches if match is not None} for group in (1, 3)
        )
        if max(first) > MONTHS and max(second) > MONTHS:
            return None  # neither the day nor the month comes first
        has_points = any(match is not None and match[2] == "." for match in matches)
        day_first = max(first) > MONTHS or (has_points and max(second) <= MONTHS)
        options["dayfirst"] = day_first
        order = ", day first" if day_first else ", month first"
    elif not all(
        ISO_DATE.fullmatch(texts[row]) or NAMED_DATE.fullmatch(texts[row]) for row in given
    ):
        return None
    import pandas  # noqa: PLC0415  (late: who has such a column has it)

    series = pandas.Series([text if is_given(text) else None for text in texts], dtype=object)
    found = pandas.to_datetime(series, errors="coerce", utc=True, **options)
    return None if found[given].isna().any() else days(found, order)


def days(moments: Any, how: str = "") -> Numbers:
    """Return a column of moments as days since the first."""
    first = moments.min()
    values = (moments - first).dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan) / DAY
    return Numbers(values, f"dates{how}, used as days since {first.date()}")
