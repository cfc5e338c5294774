"""Verbs that measure and draw, on a small network of every architecture: they answer, or say what a network lacks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.mistakes import shows

import spikformer as sf
from spikformer.analysis.specimens import shrunk, specimen

RESIDUAL = {"image_size": 8, "in_channels": 1, "widths": (4, 8, 8), "depths": (1, 2, 1)}
STAGES = {"image_size": 8, "in_channels": 1, "embed_dim": 32, "num_heads": 2}
EVENTS = {"data": "digits_dvs", "image_size": 16, "num_classes": 10, "time_steps": 8}
WITHOUT_ATTENTION: dict[str, dict[str, Any]] = {
    "sew_resnet_small_cifar10": RESIDUAL,
    "max_resnet_18_cifar10": {"stem_width": 4, **RESIDUAL},
    "sew_7b_net_dvs128": {**EVENTS, "widths": (4, 8)},
}
CASES: dict[str, dict[str, Any]] = {
    **WITHOUT_ATTENTION,
    "cml_spikformer_4_256_cifar10": {**STAGES, "depth": 2},
    "spikingformer_2_256_dvs128": {**EVENTS, "embed_dim": 32, "num_heads": 2},
    "spike_driven_transformer_2_256_cifar10": STAGES,
    "spike_driven_transformer_2_256_cifar10dvs": {**EVENTS, "embed_dim": 32, "num_heads": 2},
    "qkformer_4_384_cifar10": STAGES,
    "qkformer_2_256_cifar10dvs": {**EVENTS, "embed_dim": 32, "num_heads": 2},
    "ms_qkformer_4_384_cifar10": STAGES,
    "maxformer_tiny_digits": {},
    "maxformer_tiny_digits_dvs": {"data": "digits_dvs"},
}
FEW = ("--max-samples", 20)


@pytest.fixture
def write_case(tmp_path: Path, write_weights: Callable[..., Path]) -> Callable[[str], Path]:
    return lambda name: write_weights(tmp_path / "best.safetensors", name, **CASES[name])


QUICK = ("maxformer_tiny_digits", "qkformer_4_384_cifar10")
MARKED = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]


@pytest.mark.parametrize("name", MARKED)
def test_measured_and_drawn(name: str, write_case: Callable[[str], Path], tmp_path: Path, run_here) -> None:
    weights = write_case(name)
    energy = json.loads(run_here("energy", weights, *FEW, "--json").stdout)
    products = any(layer["kind"] == "attention" for layer in energy["layers"])
    assert (energy["attention_order"] is not None) == products
    assert energy["energy_mj"]["strict"]["every_step"] > 0
    assert "head" in run_here("energy", weights, *FEW, "--memory").stdout
    firing = json.loads(run_here("firing", weights, *FEW, "--json").stdout)
    assert all(len(rates) == firing["time_steps"] for rates in firing["rates"].values())
    assert all(0 <= rate <= 1 for rates in firing["rates"].values() for rate in rates)
    assert (firing["attention"] == {}) == (name in WITHOUT_ATTENTION)
    assert all({"Q", "K"} <= rates.keys() for rates in firing["attention"].values())
    assert 0 <= json.loads(run_here("evaluate", weights, *FEW, "--json").stdout)["top1"] <= 1
    raster = tmp_path / "raster.png"
    run_here("figure", "raster", weights, "--output", raster)
    assert raster.stat().st_size > 0
    if CASES[name].get("data") == "digits_dvs":
        run_here("figure", "events", weights, "--output", tmp_path / "events.png")
        assert (tmp_path / "events.png").stat().st_size > 0


def test_a_raster_is_of_the_neuron_after_attention(write_case: Callable[[str], Path], tmp_path: Path, run_here) -> None:
    for name in ("spike_driven_transformer_2_256_cifar10", "maxformer_tiny_digits"):
        run_here("figure", "raster", write_case(name), "--output", tmp_path / "raster.svg")
        assert "attention.neuron" in (tmp_path / "raster.svg").read_text()


@pytest.mark.parametrize("name", WITHOUT_ATTENTION)
def test_nothing_to_look_at(name: str, write_case: Callable[[str], Path], error_message: Callable[..., str]) -> None:
    weights = write_case(name)
    assert "no attention" in error_message("attention", weights)
    assert "Q, K and V" in error_message("figure", "products", weights)


def test_import_without_heads(tmp_path: Path, run_here, error_message: Callable[..., str]) -> None:
    model = specimen(shrunk("max_resnet_18_cifar10"), torch.float32)
    renamed = {"stages.": "layer", "stem.conv": "conv1", "stem.norm": "bn1", "head": "fc1"}
    state = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in renamed.items():
            name = name.replace(ours, theirs)
        if name.startswith("layer"):
            stage, block, part, *rest = name.removeprefix("layer").split(".")
            words = {"conv": "downsample.1", "norm": "downsample.2"}
            if part == "layers":
                number, kind, *rest = rest
                words = {"conv": f"conv{int(number) + 1}", "norm": f"bn{int(number) + 1}"}
            else:
                kind, *rest = rest
            name = ".".join((f"layer{int(stage) + 1}", block, words[kind], *rest))
        state[name] = tensor
    source, output = tmp_path / "best.pth", tmp_path / "ours.safetensors"
    torch.save({"net": state}, source)
    said = run_here("import", source, "--output", output).stdout
    assert f"{model.config.title}: " in said
    assert " heads," not in said
    assert torch.equal(sf.load(output).head.weight, model.head.weight)
    assert shows(error_message("import", source, "--num-heads", 4), "Max-ResNet", "--num-heads")
    assert "'join'" in error_message("import", source, "--join", "and")
