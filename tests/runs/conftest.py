"""A folder to train in."""

from pathlib import Path

import pytest

from spikformer.runs.writer import RunWriter


@pytest.fixture
def folder(tmp_path: Path) -> RunWriter:
    made = RunWriter(tmp_path / "runs" / "first")
    made.open_new()
    return made
