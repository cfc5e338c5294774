"""Where files are kept when the user names no folder."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache folder for this project; SPIKFORMER_CACHE names another."""
    if named := os.environ.get("SPIKFORMER_CACHE"):
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("spikformer"))


def data_folder(name: str) -> Path:
    """Where the files of a set are kept, and downloaded to."""
    return cache_folder() / "data" / name
