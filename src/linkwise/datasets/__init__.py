"""Data by name: with scikit-learn, made on the spot, from a folder, or from OpenML."""

from linkwise.datasets.generators import (
    extend_by_shifts,
    make_block_model,
    make_circles,
    make_customers,
    make_mixture,
    make_moons,
    make_shifted_digits,
    make_signed_block_model,
    make_spirals,
    make_xor,
    signed_parts,
)
from linkwise.datasets.loading import Listing, available, load
from linkwise.datasets.value import Dataset, DatasetNotFoundError, UnverifiedDataWarning

__all__ = [
    "Dataset",
    "DatasetNotFoundError",
    "Listing",
    "UnverifiedDataWarning",
    "available",
    "extend_by_shifts",
    "load",
    "make_block_model",
    "make_circles",
    "make_customers",
    "make_mixture",
    "make_moons",
    "make_shifted_digits",
    "make_signed_block_model",
    "make_spirals",
    "make_xor",
    "signed_parts",
]
