"""Data made on the spot."""

from linkwise.datasets.generators import make_xor

__all__ = ["make_xor"]
