"""Spike-driven Transformer: masks instead of products, spikes before the head, filters for CIFAR10-DVS."""

import pytest
import torch
from tests.models.weight_inputs import weight_inputs

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import SpikeDrivenConfig
from spikformer.errors import FieldError
from spikformer.models import SpikeDrivenTransformer

pytestmark = pytest.mark.core

CIFAR, EVENTS = "spike_driven_transformer_2_512_cifar10", "spike_driven_transformer_2_256_cifar10dvs"


@pytest.mark.parametrize("name", [CIFAR, EVENTS, "spike_driven_transformer_8_512_imagenet"])
def test_all_weights_but_the_first_see_spikes(name: str) -> None:
    model = specimen(shrunk(name))
    inputs = weight_inputs(model, frames_for(model.config, batch_size=2))
    real = {layer for layer, x in inputs.items() if not set(x.unique().tolist()) <= {0.0, 1.0}}
    assert real == {"stem.stages.0.conv"}


def test_a_spike_for_each_channel_masks_the_query() -> None:
    model = specimen(shrunk(CIFAR))
    seen_by_projection = {}
    attention = model.blocks[0].attention
    attention.projection.register_forward_hook(lambda _m, inputs, _o: seen_by_projection.update(x=inputs[0]))
    with sf.record(model) as seen, torch.no_grad():
        model(frames_for(model.config, batch_size=2))
    key, value = (seen.spikes_of(f"blocks.0.attention.{part}.neuron") for part in ("key", "value"))
    summed = (key * value).sum(2, keepdim=True)
    assert torch.equal(seen.currents["blocks.0.attention.neuron"], summed)
    masked = seen.spikes_of("blocks.0.attention.query.neuron") * seen.spikes_of("blocks.0.attention.neuron")
    assert torch.equal(seen_by_projection["x"], masked)


def test_everything_but_the_head_starts_truncated_normal() -> None:
    model = sf.create_model(CIFAR)
    assert isinstance(model, SpikeDrivenTransformer)
    for layer in (model.stem.position.conv, model.blocks[0].mlp.hidden.linear, model.blocks[0].attention.query.linear):
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not model.blocks[0].mlp.hidden.linear.bias.any()
    model.reset_classifier(100)
    assert model.head.bias.any()


def test_a_ratio_of_one_has_an_inner_residual_sum() -> None:
    model = specimen(shrunk(CIFAR, mlp_ratio=1.0, depth=1))
    mlp, x = model.blocks[0].mlp, torch.randn(2, 3, 5, 64, dtype=torch.float64)
    hidden = mlp.hidden(x)
    assert torch.equal(mlp(x), hidden + mlp.output(x + hidden))
    plain = specimen(shrunk(CIFAR, depth=1)).blocks[0].mlp
    assert torch.equal(plain(x), plain.output(plain.hidden(x)))


def test_filters_need_rows_and_columns() -> None:
    with pytest.raises(FieldError) as caught:
        SpikeDrivenConfig(image_size=None, attention="spike_driven_dilated")
    assert caught.value.field == "image_size"


def test_learnable_time_constants_start_at_two() -> None:
    model = sf.create_model(CIFAR, neuron="plif")
    logits = [parameter for name, parameter in model.named_parameters() if name.endswith("gain_logit")]
    assert len(logits) == 4 + 2 * 7 + 1
    assert all(logit.shape == () and logit == 0 for logit in logits)
