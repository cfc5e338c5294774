"""Training: it learns, it is repeatable, and a refactor keeps the recorded curve."""

import json
from pathlib import Path

import pytest
import torch

import spikformer as sf
from spikformer.data import Split, load_digits
from spikformer.training import evaluate, train

CURVE = Path(__file__).parent / "losses_tiny_digits_float64.json"


def losses(steps: int = 20) -> list[float]:
    """Twenty steps of one batch each, in float64, where rounding cannot flip a spike."""
    digits, _ = load_digits()
    torch.manual_seed(0)
    model = sf.create_model("spikformer_tiny_digits").double()
    batch = Split(digits.images[:64].double(), digits.labels[:64])
    return [epoch.loss for epoch in train(model, batch, epochs=steps)]


def test_the_recorded_curve() -> None:
    """Recorded by this function; a change of mathematics, not of speed, may record it anew, and must say why."""
    assert losses() == pytest.approx(json.loads(CURVE.read_text()), rel=1e-9)


def test_no_decay_on_biases_norms_and_neurons() -> None:
    """With every gradient set to zero, only decay can move a weight, and it moves matrices and kernels alone."""
    model = sf.create_model("spikformer_tiny_digits", neuron="plif")
    for parameter in model.parameters():
        parameter.register_hook(torch.zeros_like)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    next(train(model, load_digits()[0], epochs=1))
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {name for name, p in before.items() if p.ndim > 1}


def test_evaluate_counts_right_answers_and_keeps_the_mode() -> None:
    model = sf.create_model("spikformer_tiny_digits").train()
    _, test = load_digits()
    model.eval()
    with torch.no_grad():
        expected = (model(test.images).argmax(1) == test.labels).double().mean().item()
    model.train()
    assert evaluate(model, test) == pytest.approx(expected)
    assert model.training


def test_digits_are_split_by_class_and_always_the_same() -> None:
    train_split, test_split = load_digits()
    assert train_split.images.shape == (1437, 1, 8, 8)
    assert test_split.images.shape == (360, 1, 8, 8)
    assert set(test_split.labels.bincount().tolist()) <= {34, 35, 36, 37}
    assert train_split.images.mean().abs() < 1e-5
    assert torch.equal(load_digits()[1].labels, test_split.labels)


def test_too_few_samples_for_a_batch() -> None:
    with pytest.raises(ValueError, match="at least one batch of 64 samples, got 3"):
        next(train(sf.create_model("spikformer_tiny_digits"), Split(torch.zeros(3, 1, 8, 8), torch.zeros(3)), epochs=1))
