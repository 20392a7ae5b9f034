"""Colours and shapes of clusters, the same as in the plots."""

from __future__ import annotations

from typing import NamedTuple

from linkwise.plots import COLOURS, SHAPES, VIOLATED

__all__ = ["PATHS", "VIOLATED", "Look", "looks"]

# The markers of the plots as outlines around the origin, within [-6, 6]; one source for the
# canvas and for the tables.
OUTLINES = {
    "o": "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "s": "M-4.5-4.5h9v9h-9Z",
    "^": "M0-5.6L5.4 4.2H-5.4Z",
    "D": "M0-6L5 0 0 6-5 0Z",
    "v": "M0 5.6L5.4-4.2H-5.4Z",
    "P": "M-1.9-5.5h3.8v3.6h3.6v3.8h-3.6v3.6h-3.8v-3.6h-3.6v-3.8h3.6Z",
    "X": "M-2.5-5.3L0-2.8 2.5-5.3 5.3-2.5 2.8 0 5.3 2.5 2.5 5.3 0 2.8"
    "L-2.5 5.3-5.3 2.5-2.8 0-5.3-2.5Z",
    "*": "M0-6L1.6-2 5.7-1.9 2.5.8 3.5 4.9 0 2.6-3.5 4.9-2.5.8-5.7-1.9-1.6-2Z",
}
PATHS = tuple(OUTLINES[shape] for shape in SHAPES)

WHITE, BLACK = (255, 255, 255), (0, 0, 0)
# Black is one of the colours: on a dark page it becomes a light grey.
ON_DARK = {"#000000": "#E6E6E6"}
# Shapes cannot be seen on maps of many points: after all colours are used they come again
# lighter, then darker.
TONES = ((WHITE, 0.0), (WHITE, 0.5), (BLACK, 0.4))


class Look(NamedTuple):
    """How a cluster is drawn: its colour on a light and on a dark page, and its shape."""

    light: str
    dark: str
    shape: int


def looks(n_clusters: int) -> list[Look]:
    """Return the look of each cluster.

    Examples
    --------
    >>> looks(8)[7]
    Look(light='#000000', dark='#E6E6E6', shape=7)
    """
    return [_look(number) for number in range(n_clusters)]


def _look(number: int) -> Look:
    lap = number // len(COLOURS)
    colour = COLOURS[number % len(COLOURS)]
    other, share = TONES[lap % len(TONES)]
    light = _mixed(colour, other, share)
    dark = _mixed(ON_DARK.get(colour, colour), other, share)
    return Look(light, dark, (number + lap) % len(SHAPES))


def _mixed(colour: str, other: tuple[int, int, int], share: float) -> str:
    channels = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    mixed = (round(c + share * (o - c)) for c, o in zip(channels, other, strict=True))
    return "#" + "".join(f"{channel:02X}" for channel in mixed)
