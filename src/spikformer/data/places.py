"""Where files are kept when the user names no folder."""

from __future__ import annotations

from pathlib import Path

from spikformer.disk import cache_folder


def data_folder(name: str) -> Path:
    """Where the files of a set are kept, and downloaded to."""
    return cache_folder() / "data" / name
