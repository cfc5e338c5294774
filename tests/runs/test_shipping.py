"""Weights to hand on: what their card says was measured, and holds when it is measured again."""

from pathlib import Path

import pytest
import torch

import spikformer as sf
from spikformer.config import ModelConfig
from spikformer.runs.shipping import list_shipped, ship

SMALL = ModelConfig(
    image_size=(8, 8),
    in_channels=1,
    num_classes=10,
    embed_dim=16,
    depth=1,
    num_heads=2,
    time_steps=2,
    pool_stages=(True,),
)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = sf.train(
        "spikformer_tiny_digits",
        output=tmp_path_factory.mktemp("run") / "run",
        epochs=1,
        max_samples=200,
        model=SMALL,
        batch_size=50,
        whiten=True,
        augmentation={"crop_scale": (0.8, 1.0)},
    )
    return run.last


def test_a_card_says_what_was_measured(weights: Path, tmp_path: Path) -> None:
    output = tmp_path / "net.safetensors"
    card = ship(weights, output, licence="Apache-2.0", limits="A test.", confidence=0.9)
    shipped = sf.load(output)
    assert shipped.card == card
    assert (card.licence, card.limits, card.confidence) == ("Apache-2.0", "A test.", 0.9)
    assert card.settings["model"]["embed_dim"] == 16
    theirs = sf.load(weights).state_dict()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in shipped.state_dict().items())

    found = {result.metric: result for result in card.results}
    assert found["accuracy"].value == found["accuracy_after_step_2"].value == sf.evaluate(output).top1
    assert "spikformer evaluate net" in found["accuracy"].command
    assert {"paper_energy_mj", "strict_energy_mj", "entrywise_energy_mj"} <= found.keys()
    assert found["engine_latency_ms"].value > 0
    trained = found["training_seconds"]
    assert trained.value > 0
    assert trained.machine == found["engine_latency_ms"].machine is not None
    words = trained.command.split()
    assert words[:3] == ["spikformer", "train", "spikformer_tiny_digits"]
    assert words[words.index("--model.embed-dim") + 1] == "16"
    assert words[words.index("--max-samples") + 1] == "200"


def test_half_the_bytes(weights: Path, tmp_path: Path) -> None:
    whole, half = tmp_path / "whole.safetensors", tmp_path / "half.safetensors"
    ship(weights, whole, licence="CC0-1.0", limits="A test.")
    card = ship(weights, half, licence="CC0-1.0", limits="A test.", half=True)
    assert half.stat().st_size < 0.7 * whole.stat().st_size  # cards and names take the rest
    rounded = sf.load(weights).half().float().state_dict()
    assert all(torch.equal(tensor, rounded[name]) for name, tensor in sf.load(half).state_dict().items())
    accuracy = next(result.value for result in card.results if result.metric == "accuracy")
    assert accuracy == sf.evaluate(half).top1


@pytest.mark.parametrize("shipped", list_shipped(), ids=lambda shipped: shipped.name)
def test_every_shipped_network_has_a_full_card(shipped) -> None:
    card = shipped.card
    assert card.class_names
    assert card.preprocessing is not None
    assert card.licence
    assert card.limits
    metrics = {result.metric for result in card.results}
    assert {"accuracy", "paper_energy_mj", "engine_latency_ms", "training_seconds"} <= metrics
    assert {f"accuracy_after_step_{step}" for step in range(1, shipped.config.time_steps + 1)} <= metrics
