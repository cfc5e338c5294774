"""Training: it learns, it is repeatable, and a refactor keeps the recorded curve."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import spikformer as sf
from spikformer.data import DataSet, open_dataset
from spikformer.training import accuracy_after_steps, train

CURVE = Path(__file__).parent / "losses_tiny_digits_float64.json"


def first(data: DataSet, count: int) -> DataSet:
    return replace(data, train=data.train.take(np.arange(count)))


def losses(steps: int = 20) -> list[float]:
    """Twenty steps of one batch each, in float64, where rounding cannot flip a spike."""
    torch.manual_seed(0)
    model = sf.create_model("spikformer_tiny_digits").double()
    return [epoch.loss for epoch in train(model, first(open_dataset("digits"), 64), epochs=steps)]


def test_the_recorded_curve() -> None:
    """Recorded by this function; a change of mathematics or data may record it anew, and must say why."""
    assert losses() == pytest.approx(json.loads(CURVE.read_text()), rel=1e-9)


def test_no_decay_on_biases_norms_and_neurons() -> None:
    """With every gradient set to zero, only decay can move a weight, and it moves matrices and kernels alone."""
    model = sf.create_model("spikformer_tiny_digits", neuron="plif")
    for parameter in model.parameters():
        parameter.register_hook(torch.zeros_like)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    next(train(model, open_dataset("digits"), epochs=1))
    moved = {name for name, p in model.named_parameters() if not torch.equal(p, before[name])}
    assert moved == {name for name, p in before.items() if p.ndim > 1}


def test_accuracy_counts_right_answers_and_keeps_the_mode() -> None:
    model, data = sf.create_model("spikformer_tiny_digits"), open_dataset("digits")
    next(train(model, data, epochs=1))
    shares = accuracy_after_steps(model, data, "test", batch_size=100)
    assert model.training
    assert len(shares) == 4
    with torch.no_grad():
        predicted = model.eval()(data.prepare(data.test.arrays)).argmax(1).numpy()
    assert shares[-1] == pytest.approx((predicted == data.test.labels).mean())
    assert shares[-1] > 0.15, "better than chance after one epoch"


def test_too_few_samples_for_a_batch() -> None:
    with pytest.raises(ValueError, match="at least one batch of 64 samples, got 3"):
        next(train(sf.create_model("spikformer_tiny_digits"), first(open_dataset("digits"), 3), epochs=1))


def test_events_train_too() -> None:
    torch.manual_seed(0)
    model = sf.create_model("spikformer_tiny_digits_dvs")
    epochs = list(train(model, first(open_dataset("digits_dvs"), 128), epochs=6))
    assert epochs[-1].loss < epochs[0].loss - 0.3
