"""Data sets by name."""

from __future__ import annotations

from collections.abc import Callable

from spikformer.data.dataset import DataSet
from spikformer.data.embedded import digits, digits_dvs

EMBEDDED: dict[str, Callable[[], DataSet]] = {"digits": digits, "digits_dvs": digits_dvs}


def open_dataset(name: str) -> DataSet:
    """A data set by its name; so far the embedded ones."""
    if name not in EMBEDDED:
        raise ValueError(f"There is no data set {name!r} yet; choose from {', '.join(EMBEDDED)}.")
    return EMBEDDED[name]()
