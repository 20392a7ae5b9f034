"""The methods, one file each; `linkwise.registry` lists them."""

from linkwise.methods._base import ConstrainedClusterer

__all__ = ["ConstrainedClusterer"]
