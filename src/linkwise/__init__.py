"""linkwise: clustering that respects what its owner knows."""

from linkwise._version import __version__

__all__ = ["__version__"]
