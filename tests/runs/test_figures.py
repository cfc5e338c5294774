"""Figures of trained weights, as functions: what they are drawn from, and what they raise."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.mistakes import field_error, file_error

import spikformer as sf
from spikformer.analysis.recorder import record
from spikformer.data import open_dataset
from spikformer.models import SpikingNetwork
from spikformer.runs.figures import (
    collect_products,
    draw_attention,
    figure_of_curves,
    figure_of_events,
    figure_of_products,
    figures_of_raster,
)
from spikformer.runs.measure import batches

DIGITS = open_dataset("digits")


@pytest.fixture
def weights(model: SpikingNetwork, tmp_path: Path) -> Path:
    sf.save(model, tmp_path / "best.safetensors")
    return tmp_path / "best.safetensors"


def test_products_are_those_of_the_network(model: SpikingNetwork) -> None:
    found = collect_products(model, DIGITS, "test", 20)
    expected = []
    for batch in batches(model, DIGITS, "test", 20, 16):
        with torch.no_grad(), record(model.eval()) as seen:
            model(batch)
        expected += [seen.products[f"blocks.{block}.attention"].flatten() for block in range(2)]
    assert [*found] == ["ssa"]
    assert np.array_equal(found["ssa"], torch.cat(expected).numpy())
    with field_error("max_samples", 0):
        collect_products(model, DIGITS, "test", 0)


def test_nothing_to_draw() -> None:
    with field_error("runs"):
        figure_of_curves([])
    with field_error("weights"):
        figure_of_products([])


def test_attention_of_several_samples_is_numbered(weights: Path, tmp_path: Path) -> None:
    drawn = draw_attention(weights, tmp_path / "maps.png", samples=[3, 5], block=1)
    assert [path.name for path in drawn] == ["maps_1.png", "maps_2.png"]
    assert [each.source for each in drawn.values()] == ["test sample 3", "test sample 5"]
    assert all(path.is_file() for path in drawn)
    for name, wrong in (("block", 3), ("head", 5), ("step", 5)):
        with field_error(name, wrong):
            draw_attention(weights, tmp_path / "none.png", samples=[3], **{name: wrong})
    assert not (tmp_path / "none.png").exists()


def test_rasters_and_events_suit_the_network(weights: Path) -> None:
    raster, membranes = figures_of_raster(weights, sample=2, num_neurons=5)
    assert raster.axes
    assert membranes.axes
    with field_error("num_neurons", 0):
        figures_of_raster(weights, num_neurons=0)
    with file_error(weights, "unfit"):
        figure_of_events(weights)
