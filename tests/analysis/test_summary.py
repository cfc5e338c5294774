"""A summary lists every layer that computes, in order, with sums that agree with the model."""

import pytest
import torch

import spikformer as sf
from spikformer.analysis.operations import count_operations

pytestmark = pytest.mark.core


@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "spikformer_2_256_dvs128", "transformer_4_384_cifar10"])
def test_sums_are_the_models(name: str) -> None:
    model = sf.create_model(name)
    found = sf.summary(model)
    assert found.num_parameters == sum(parameter.numel() for parameter in model.parameters())
    assert found.macs == sum(layer.macs for layer in count_operations(model))
    assert found.title == model.config.title


def test_rows_have_names_shapes_and_costs() -> None:
    model = sf.create_model("spikformer_tiny_digits")
    rows = {layer.name: layer for layer in sf.summary(torch.nn.DataParallel(model)).layers}
    assert rows["stem.stages.0.conv"].shape == (32, 8, 8)
    assert rows["stem.stages.0.neuron"].shape == (32, 8, 8)
    assert rows["blocks.0.attention.query.linear"].shape == (16, 64)
    assert rows["blocks.1.mlp.hidden.neuron"].shape == (16, 256)
    assert rows["blocks.1.mlp.hidden.neuron"].kind == "LIF"
    assert rows["head"].macs == 640
    assert list(rows)[-1] == "head"


def test_the_table_shows_every_layer() -> None:
    text = str(sf.summary(sf.create_model("spikformer_tiny_digits", depth=1)))
    assert "blocks.0.attention.mixing" in text
    assert text.splitlines()[-1].startswith("Spikformer-1-64")
