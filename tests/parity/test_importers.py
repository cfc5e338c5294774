"""Checkpoints of the successors: recognised by names and shapes, asked about where those do not decide."""

import argparse
import logging
from pathlib import Path

import pytest
import torch
from tests.mistakes import field_error, mistake

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.errors import UnknownNameError
from spikformer.models.importers import recognise
from spikformer.models.official_names import NAMINGS, Naming

pytestmark = pytest.mark.core

TITLES = {naming.title: naming for naming in NAMINGS}
CASES = [
    ("Spikformer, CIFAR", "spikformer_4_384_cifar10"),
    ("CML-Spikformer", "cml_spikformer_4_384_cifar10"),
    ("Spikformer, ImageNet and events", "spikformer_8_512_imagenet"),
    ("Spikingformer, CIFAR", "spikingformer_4_384_cifar10"),
    ("Spikingformer", "spikingformer_8_512_imagenet"),
    ("Spikingformer", "cml_spikingformer_4_384_cifar10"),
    ("Spikingformer", "cml_spikingformer_2_256_cifar10dvs"),
    ("Spike-driven Transformer", "spike_driven_transformer_2_512_cifar10"),
    ("Spike-driven Transformer", "spike_driven_transformer_8_512_imagenet"),
]


def official(naming: Naming, model: sf.Spikformer) -> dict[str, torch.Tensor]:
    """A model's weights under the names, and in the shapes, of the authors' code."""
    ours = model.state_dict()
    names = {f"block.{index}.{part}" for index in range(model.config.depth) for part in naming.block}
    names |= {*naming.stem, *naming.others, "head"}
    linear = "block.0.mlp.fc1_linear.weight" in naming.signs
    names = {name for name in names if not name.endswith("_conv" if linear and "block." in name[:6] else "_linear")}
    leaves = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    state = {}
    for name in (f"{module}.{leaf}" for module in names for leaf in leaves):
        if (own := naming.translate(name)) in ours:
            kernel = own.endswith(".linear.weight") and not linear
            state[name] = ours[own][..., None, None] if kernel else ours[own]
    heads = model.config.num_heads
    if naming.title == "Spike-driven Transformer":
        state |= {f"block.{block}.attn.talking_heads.weight": torch.ones(heads, heads, 1) for block in range(2)}
    else:
        state |= {f"block.{block}.norm1.weight": torch.ones(64) for block in range(2)}
    return state


@pytest.mark.parametrize(("title", "preset"), CASES)
def test_every_naming_comes_back_to_the_bit(title: str, preset: str, caplog) -> None:
    caplog.set_level(logging.WARNING, "spikformer")
    model = specimen(shrunk(preset))
    config = model.config
    state = official(TITLES[title], model)
    assert recognise(state).title == title
    again = sf.from_official(
        state, num_heads=config.num_heads, preset=preset, time_steps=config.time_steps, image_size=config.image_size
    )
    assert again.config == config
    x = frames_for(config, batch_size=2)
    assert torch.equal(again(x), model(x))
    assert "Dropped 2 tensors" in caplog.text


@pytest.mark.parametrize(("title", "preset"), [case for case in CASES if case[0] != "Spikingformer"])
def test_what_names_and_shapes_decide_is_not_asked_for(title: str, preset: str) -> None:
    model = specimen(shrunk(preset))
    config = sf.from_official(official(TITLES[title], model), num_heads=model.config.num_heads).config
    assert config == model.config.override(image_size=None, time_steps=config.time_steps)


def test_networks_that_compute_differently_under_one_naming_need_a_preset() -> None:
    model = specimen(shrunk("spikingformer_8_512_imagenet"))
    state = official(TITLES["Spikingformer"], model)
    with field_error("preset", "cml_spikingformer_8_512_imagenet", "spikingformer_8_512_imagenet"):
        sf.from_official(state, num_heads=8)
    for preset, pool_after in (
        ("spikingformer_8_384_imagenet", "neuron"),
        ("cml_spikingformer_8_768_imagenet", "norm"),
    ):
        assert sf.from_official(state, num_heads=8, preset=preset).config.pool_after == pool_after


def test_a_preset_of_another_family_is_named() -> None:
    state = official(TITLES["CML-Spikformer"], specimen(shrunk("cml_spikformer_4_384_cifar10")))
    with field_error("preset", "CML-Spikformer", "'spikformer_4_384_cifar10'"):
        sf.from_official(state, num_heads=8, preset="spikformer_4_384_cifar10")
    with mistake(UnknownNameError, kind="model", name="cml_spikformer_4_384_cifar"):
        sf.from_official(state, num_heads=8, preset="cml_spikformer_4_384_cifar")


def test_training_arguments_give_the_number_of_heads() -> None:
    state = official(TITLES["Spikingformer, CIFAR"], specimen(shrunk("spikingformer_4_384_cifar10", num_heads=4)))
    with field_error("num_heads", "--num-heads"):
        sf.from_official(state)
    arguments = argparse.Namespace(num_heads=4)
    assert sf.from_official({"state_dict": state, "args": arguments}).config.num_heads == 4


def test_a_mixing_of_heads_tells_their_number() -> None:
    state = official(TITLES["Spike-driven Transformer"], specimen(shrunk("spike_driven_transformer_2_512_cifar10")))
    assert sf.from_official(state).config.num_heads == 8
    with field_error("num_heads", "num_heads=8", "num_heads=4"):
        sf.from_official(state, num_heads=4)


def test_filters_take_the_size_from_the_training_arguments(tmp_path: Path) -> None:
    preset = "spike_driven_transformer_2_256_cifar10dvs"
    state = official(TITLES["Spike-driven Transformer"], specimen(shrunk(preset)))
    path = tmp_path / "model_best.pth.tar"
    torch.save({"state_dict": state, "args": argparse.Namespace(img_size=64, T=10)}, path)
    config = sf.from_official(path, num_heads=8).config
    assert (config.attention, config.image_size, config.time_steps) == ("spike_driven_dilated", (64, 64), 10)
    with field_error("image_size"):
        sf.from_official(state, num_heads=8)
