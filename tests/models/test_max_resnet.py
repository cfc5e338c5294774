"""Max-ResNet: membranes in the residual stream and in the shortcuts' weights, pools before neurons."""

import pytest
import torch
from tests.models.weight_inputs import weight_inputs

import spikformer as sf
from spikformer.analysis.energy import measure_energy
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import MaxResNetConfig
from spikformer.errors import FieldError
from spikformer.models import MaxResNet

pytestmark = pytest.mark.core

NAME = "max_resnet_18_cifar10"


def test_weights_see_spikes_but_for_the_first_and_the_shortcuts() -> None:
    model = specimen(shrunk(NAME))
    inputs = weight_inputs(model, frames_for(model.config, batch_size=2))
    real = {layer for layer, x in inputs.items() if not set(x.unique().tolist()) <= {0.0, 1.0}}
    shortcuts = {f"stages.{stage}.0.shortcut.conv" for stage in range(3)}
    assert real == {"stem.conv", "head"} | shortcuts


def test_a_block_pools_between_its_convolutions() -> None:
    model = specimen(shrunk(NAME))
    with sf.record(model) as seen, torch.no_grad():
        model(frames_for(model.config, batch_size=2))
    assert seen.spikes_of("stages.1.0.layers.0.neuron").shape[-2:] == (12, 16)
    assert seen.spikes_of("stages.1.0.layers.1.neuron").shape[-2:] == (6, 8)
    assert seen.spikes_of("output_neuron").shape == (4, 2, 12, model.num_features)


def test_the_head_reads_the_share_of_positions_that_fire() -> None:
    model = specimen(shrunk(NAME))
    assert isinstance(model, MaxResNet)
    x = frames_for(model.config, batch_size=2)
    with sf.record(model) as seen, torch.no_grad():
        steps = model.forward_steps(x)
        assert torch.allclose(model.head(seen.spikes_of("output_neuron").mean(2)), steps)


def test_weights_that_read_membranes_multiply_under_every_convention() -> None:
    model = specimen(shrunk(NAME))
    report = measure_energy(model, [frames_for(model.config, batch_size=2)])
    multiplied = {layer.name for layer in report.layers if layer.operations("paper").macs}
    assert multiplied == {"stem.conv", *(f"stages.{stage}.0.shortcut.conv" for stage in range(3))}
    assert all(layer.operations("paper").acs >= 0 for layer in report.layers)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("depths", {"depths": (1, 2)}),
        ("image_size", {"image_size": 30}),
        ("stem_width", {"stem_width": 0}),
        ("join", {"join": "add"}),
    ],
)
def test_a_wrong_field_is_named(field: str, values: dict) -> None:
    with pytest.raises(FieldError) as error:
        MaxResNetConfig().override(**values)
    assert error.value.field == field
