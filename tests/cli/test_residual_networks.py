"""Every verb on networks without attention: they answer, or say what such a network lacks."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.mistakes import shows

import spikformer as sf
from spikformer.analysis.specimens import shrunk, specimen

TINY = {"image_size": 8, "in_channels": 1, "widths": (4, 8, 8), "depths": (1, 2, 1)}
CASES = {
    "sew_resnet_small_cifar10": {"data": "digits", **TINY},
    "max_resnet_18_cifar10": {"data": "digits", "stem_width": 4, **TINY},
    "sew_7b_net_dvs128": {"data": "digits_dvs", "image_size": 16, "num_classes": 10, "widths": (4, 8), "time_steps": 8},
}


@pytest.fixture(params=CASES)
def residual_weights(request, tmp_path: Path, write_weights: Callable[..., Path]) -> Path:
    return write_weights(tmp_path / "best.safetensors", request.param, **CASES[request.param])


def test_measured_and_drawn(residual_weights: Path, tmp_path: Path, run_here) -> None:
    few = ("--max-samples", 20)
    energy = json.loads(run_here("energy", residual_weights, *few, "--json").stdout)
    assert energy["attention_order"] is None
    assert energy["energy_mj"]["strict"]["every_step"] > 0
    assert "head" in run_here("energy", residual_weights, *few, "--memory").stdout
    firing = json.loads(run_here("firing", residual_weights, *few, "--json").stdout)
    assert firing["attention"] == {}
    assert 0 <= json.loads(run_here("evaluate", residual_weights, *few, "--json").stdout)["top1"] <= 1
    raster = tmp_path / "raster.png"
    run_here("figure", "raster", residual_weights, "--output", raster)
    assert raster.stat().st_size > 0


def test_nothing_to_look_at(residual_weights: Path, refusal: Callable[..., str]) -> None:
    assert shows(refusal("attention", residual_weights), "attention")
    assert shows(refusal("figure", "products", residual_weights), residual_weights)


def test_import_without_heads(tmp_path: Path, run_here, refusal: Callable[..., str]) -> None:
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
    assert "'num_heads'" in refusal("import", source, "--num-heads", 4)
    assert "'join'" in refusal("import", source, "--join", "and")
