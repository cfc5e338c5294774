"""Checkpoints of residual networks: recognised with and without `module.`, in every entry their scripts write."""

import re
from pathlib import Path

import pytest
import torch
from tests.mistakes import field_error, file_error, mistake

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.errors import FieldError, FileError
from spikformer.models import SpikingNetwork
from spikformer.models.importers import STATE_DICT, recognise
from spikformer.models.residual_names import RESIDUAL_NAMINGS

TITLES = {naming.title: naming for naming in RESIDUAL_NAMINGS}
CASES = [
    ("SEW-ResNet", "sew_resnet_18_imagenet"),
    ("SEW-ResNet", "sew_resnet_50_imagenet"),
    ("SEW, event cameras", "sew_wide_7b_net_cifar10dvs"),
    ("SEW, event cameras", "sew_7b_net_dvs128"),
    ("Max-ResNet", "max_resnet_18_cifar10"),
]
LEAVES = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked", "w")


def official(title: str, model: SpikingNetwork) -> dict[str, torch.Tensor]:
    """A model's weights under the names of the authors' code, as SpikingJelly writes them today."""
    numbers = range(1 + max(int(n) for name in model.state_dict() for n in re.findall(r"\d+", name)))
    names = list(TITLES[title].names)
    while any(re.search("[#@]", name) for name in names):
        names = [re.sub("[#@]", str(n), name, count=1) for name in names for n in (*numbers, numbers[-1] + 1)]
    ours, state = model.state_dict(), {}
    for name in (f"{module}.{leaf}" for module in dict.fromkeys(names) for leaf in LEAVES):
        if (own := TITLES[title].translate(name)) in ours:
            state[name] = ours[own].reshape(1) if name.endswith(".w") else ours[own]
    assert len(state) == len(ours)
    return state


def in_containers(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Names of early SpikingJelly: conv1.0.weight was conv1.module.0.weight."""
    return {re.sub(r"(\.conv\d|downsample\.0|\d\.0)\.([01])\.", r"\1.module.\2.", key): x for key, x in state.items()}


@pytest.mark.parametrize(("title", "preset"), CASES)
def test_every_naming_comes_back_to_the_bit(title: str, preset: str, tmp_path: Path) -> None:
    model = specimen(shrunk(preset, image_size=64), torch.float32)
    config, x = model.config, frames_for(model.config, batch_size=2, dtype=torch.float32)
    state = official(title, model)
    contained = in_containers(state)
    if title != "Max-ResNet":
        assert any(".module.0." in key for key in contained)
    for key, weights in (("model", state), ("net", contained), ("state_dict", contained)):
        path = tmp_path / f"{key}.pth"
        torch.save({key: {f"module.{name}": tensor for name, tensor in weights.items()}}, path)
        assert recognise(weights).title == title
        again = sf.from_official(path, time_steps=config.time_steps, image_size=64)
        assert again.config == config
        assert torch.equal(again(x), model(x))


def test_what_weights_tell_is_not_asked_for() -> None:
    for title, preset in CASES:
        model = specimen(shrunk(preset, image_size=64))
        config = sf.from_official(official(title, model)).config
        size = (64, 64) if "event" in title else None  # the head of event networks has a weight for every position
        assert config == model.config.override(image_size=size, time_steps=config.time_steps)


def test_no_weight_tells_how_blocks_join() -> None:
    model = specimen(shrunk("sew_resnet_34_imagenet", join="iand"))
    state, config = official("SEW-ResNet", model), model.config
    assert sf.from_official(state).config.join == "add"
    again = sf.from_official(state, join="iand", image_size=config.image_size)
    x = frames_for(config, batch_size=2)
    assert torch.equal(again(x), model(x))


def test_a_field_that_the_network_lacks_is_named() -> None:
    state = official("SEW-ResNet", specimen(shrunk("sew_resnet_18_imagenet")))
    for field, value in (("num_heads", 8), ("joint", "and")):
        with pytest.raises(FieldError) as error:
            sf.from_official(state, **{field: value})
        assert error.value.field == field
    with field_error("preset", "SEW-ResNet", "'max_resnet_18_cifar10'"):
        sf.from_official(state, preset="max_resnet_18_cifar10")


def test_other_residual_networks_are_not_taken_for_these() -> None:
    state = {"conv1.weight": torch.ones(4, 3, 7, 7), "layer1.0.conv1.weight": torch.ones(4, 4, 3, 3)}
    with file_error(STATE_DICT, "foreign"):
        sf.from_official(state | {"fc.weight": torch.ones(10, 4)})


def test_names_that_differ_in_wrappers_alone_raise() -> None:
    state = official("SEW-ResNet", specimen(shrunk("sew_resnet_18_imagenet")))
    with file_error(STATE_DICT, "unfit", "module."):
        sf.from_official(state | {"layer1.0.conv1.module.0.weight": state["layer1.0.conv1.0.weight"]})


@pytest.mark.parametrize(
    ("title", "preset"), [CASES[4], *(pytest.param(*CASES[number], marks=pytest.mark.slow) for number in (0, 2))]
)
def test_a_checkpoint_that_lacks_a_tensor_or_has_one_more_raises(title: str, preset: str) -> None:
    state = official(title, specimen(shrunk(preset, image_size=64)))
    for name in state:
        with mistake(FileError, path=Path(STATE_DICT)):
            sf.from_official({key: x for key, x in state.items() if key != name})
    for extra in ("layer9.0.conv1.0.weight", "conv.999.conv.0.0.0.weight", "layer1.999.conv1.weight", "other"):
        with mistake(FileError, path=Path(STATE_DICT)):
            sf.from_official(state | {extra: torch.ones(4, 4, 3, 3)})
