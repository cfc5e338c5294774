"""Checkpoints of networks in stages: recognised by names and shapes, in every layout of files, with their heads."""

import argparse
import warnings
from pathlib import Path

import pytest
import torch
from tests.mistakes import field_error, mistake

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.errors import FileError
from spikformer.models import SpikingNetwork
from spikformer.models.hierarchical_names import NAMINGS, HierarchicalNaming
from spikformer.models.importers import NAMINGS as ALL
from spikformer.models.importers import STATE_DICT, recognise

TITLES = {naming.title: naming for naming in NAMINGS}
CASES = {
    "QKFormer, CIFAR": "qkformer_4_384_cifar10",
    "QKFormer, ImageNet": "qkformer_10_512_imagenet",
    "QKFormer, events": "qkformer_2_256_cifar10dvs",
    "Max-Former, CIFAR": "maxformer_4_384_cifar10",
    "Max-Former, ImageNet": "maxformer_10_384_imagenet",
    "Max-Former, events": "maxformer_2_256_cifar10dvs",
    "MS-QKFormer, CIFAR": "ms_qkformer_4_384_cifar10",
    "MS-QKFormer, ImageNet": "ms_qkformer_10_512_imagenet",
}
ATTENTION_OF_LAST_STAGE = {"QKFormer, CIFAR": "ssa", "QKFormer, events": "ssa"}


def official(naming: HierarchicalNaming, model: SpikingNetwork) -> dict[str, torch.Tensor]:
    """A model's weights under the names, and in the shapes, of the authors' code."""
    ours, depths, leaves = model.state_dict(), model.config.depths, ("weight", "bias", "running_mean", "running_var")
    blocks = [f"stage{i + 1}.{b}" for i, depth in enumerate(depths) for b in range(depth)]
    names = {f"{block}.{part}" for block in blocks for part in naming.block}
    names |= {f"patch_embed{i + 1}.{part}" for i in range(1, len(depths)) for part in naming.downsampling}
    names |= {f"patch_embed1.{part}" for part in naming.stem} | {"head"}
    last, kernel7 = f"stage{len(depths)}.", "Max-Former, ImageNet"
    attention = ATTENTION_OF_LAST_STAGE.get(naming.title, "attn")
    state = {}
    naming = naming.fitted(names)
    for name in sorted(names):
        if "_linear" in name or (".tssa." in name and name.startswith(last)):
            continue
        if naming.title.startswith("QKFormer") and f".{attention}." in name and not name.startswith(last):
            continue
        if ".mixer." in name and ("conv5" in name) != (naming.title == kernel7 and name.startswith("stage1.")):
            continue
        for leaf in (*leaves, "num_batches_tracked"):
            if (own := naming.translate(f"{name}.{leaf}")) in ours:
                kernel = own.endswith(".linear.weight")
                state[f"{name}.{leaf}"] = ours[own][..., None] if kernel else ours[own]
    return state


def test_every_naming_has_a_case() -> None:
    assert set(CASES) == set(TITLES)


@pytest.mark.parametrize(("title", "preset"), CASES.items())
def test_every_naming_comes_back_to_the_bit(title: str, preset: str) -> None:
    model = specimen(shrunk(preset))
    config, state = model.config, official(TITLES[title], model)
    assert len(state) == len(model.state_dict())
    assert recognise(state).title == title
    assert [naming.title for naming in ALL if all(sign in state for sign in naming.signs)] == [title]
    again = sf.from_official(
        state, num_heads=config.num_heads, preset=preset, time_steps=config.time_steps, image_size=config.image_size
    )
    assert again.config == config
    x = frames_for(config, batch_size=2)
    assert torch.equal(again(x), model(x))


@pytest.mark.parametrize(("title", "preset"), [case for case in CASES.items() if case[0] != "Max-Former, ImageNet"])
def test_what_names_and_shapes_decide_is_not_asked_for(title: str, preset: str) -> None:
    model = specimen(shrunk(preset))
    config = sf.from_official(official(TITLES[title], model), num_heads=model.config.num_heads).config
    assert config == model.config.override(image_size=None, time_steps=config.time_steps)


def test_a_width_decides_the_time_steps_of_max_former_and_another_needs_a_preset() -> None:
    state = official(TITLES["Max-Former, ImageNet"], specimen(shrunk("maxformer_10_384_imagenet")))
    with field_error("preset", "maxformer_10_384_imagenet"):
        sf.from_official(state, num_heads=6)
    assert sf.from_official(state, num_heads=6, preset="maxformer_10_512_imagenet").config.time_steps == 1
    wide = shrunk("maxformer_10_512_imagenet", embed_dim=512, depths=(1, 1, 1), num_classes=1000, image_size=16)
    state = official(TITLES["Max-Former, ImageNet"], specimen(wide))
    assert sf.from_official(state, num_heads=8).config.time_steps == 1


@pytest.mark.parametrize(("layout", "prefix"), [("state_dict", ""), ("model", "module."), ("net", "module.")])
def test_layouts_of_files(layout: str, prefix: str, tmp_path: Path) -> None:
    model = specimen(shrunk("qkformer_2_256_cifar10dvs"))
    state = {prefix + name: tensor for name, tensor in official(TITLES["QKFormer, events"], model).items()}
    path = tmp_path / "checkpoint.pth"
    torch.save({layout: state, "args": argparse.Namespace(T=10, num_heads=4)}, path)
    again = sf.from_official(path, num_heads=16, image_size=model.config.image_size)
    assert again.config.time_steps == 10
    x = frames_for(model.config, batch_size=2)
    assert torch.equal(again(x), model(x))


def test_heads_that_the_code_fixes_are_not_those_of_its_arguments() -> None:
    state = official(TITLES["Max-Former, CIFAR"], specimen(shrunk("maxformer_4_384_cifar10")))
    arguments = argparse.Namespace(num_heads=4)
    assert sf.from_official({"state_dict": state, "args": arguments}).config.num_heads == 8
    assert sf.from_official({"state_dict": state, "args": arguments}, num_heads=8).config.num_heads == 8
    with field_error("num_heads", "num_heads=8", "num_heads=4"):
        sf.from_official({"state_dict": state, "args": arguments}, num_heads=4)


def test_the_published_leak_is_asked_for() -> None:
    state = official(TITLES["QKFormer, CIFAR"], specimen(shrunk("qkformer_4_384_cifar10")))
    assert not sf.from_official(state, num_heads=8).config.batch_leak
    with pytest.warns(UserWarning, match="batch_leak"):
        assert sf.from_official(state, num_heads=8, batch_leak=True).config.batch_leak
    state = official(TITLES["Max-Former, CIFAR"], specimen(shrunk("maxformer_4_384_cifar10")))
    with field_error("batch_leak"):
        sf.from_official(state, num_heads=8, batch_leak=True)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state.pop("stage1.0.mlp.mlp1_conv.weight"),
        lambda state: state.pop("head.weight"),
        lambda state: state.pop("patch_embed2.proj4_conv.weight"),
        lambda state: state.update({"stage3.999999999.ssa.q_bn.bias": torch.zeros(1)}),
        lambda state: state.update({"stage9.0.ssa.q_bn.bias": torch.zeros(1)}),
        lambda state: state.update({"stage3.0.ssa.unknown.weight": torch.zeros(1)}),
        lambda state: state.update({"stage1.0.mlp.mlp1_conv.weight": torch.zeros(3)}),
    ],
)
def test_what_does_not_fit_raises(spoil) -> None:
    state = official(TITLES["QKFormer, CIFAR"], specimen(shrunk("qkformer_4_384_cifar10")))
    spoil(state)
    with warnings.catch_warnings(action="error"), mistake(FileError, path=Path(STATE_DICT)):
        sf.from_official(state, num_heads=8)
