"""A folder to train in, and a network for digits that was not trained."""

from pathlib import Path

import pytest
import torch

from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.models import SpikingNetwork
from spikformer.presets import get_preset
from spikformer.runs.writer import RunWriter


@pytest.fixture
def folder(tmp_path: Path) -> RunWriter:
    made = RunWriter(tmp_path / "runs" / "first")
    made.open_new()
    return made


@pytest.fixture
def model() -> SpikingNetwork:
    """Fires in every layer though it has learnt nothing."""
    model = specimen(get_preset("spikformer_tiny_digits").config, torch.float32)
    model.card = open_dataset("digits").card("spikformer")
    return model
