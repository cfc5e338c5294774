"""Training: it learns, it is repeatable, and a refactor keeps the recorded curve."""

import json
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import spikformer as sf
from spikformer.data import DataSet, open_dataset
from spikformer.training import measure_accuracy, train

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
    measured = measure_accuracy(model, data, "test", batch_size=100)
    shares = measured.after_steps
    assert model.training
    assert (len(shares), measured.num_samples, measured.unreadable) == (4, 359, 0)
    images = np.stack([data.test[index] for index in range(359)])
    with torch.no_grad():
        predicted = model.eval()(data.prepare(images)).argmax(1).numpy()
    assert shares[-1] == pytest.approx((predicted == data.test.labels).mean())
    assert shares[-1] > 0.15, "better than chance after one epoch"


def test_too_few_samples_for_a_batch() -> None:
    with pytest.raises(ValueError, match="at least one batch of 64 samples, but digits has 3 for train"):
        next(train(sf.create_model("spikformer_tiny_digits"), first(open_dataset("digits"), 3), epochs=1))


@pytest.fixture
def photographs(tmp_path: Path) -> DataSet:
    """Dark cats and bright dogs; two of the cats are damaged, one in each split."""
    for split, count in (("train", 16), ("test", 4)):
        for name, brightness in (("cat", 40), ("dog", 200)):
            (tmp_path / split / name).mkdir(parents=True)
            for number in range(count):
                path = tmp_path / split / name / f"{number}.jpg"
                Image.new("RGB", (12, 12), (brightness + number, brightness, 0)).save(path)
        path = tmp_path / split / "cat" / "3.jpg"
        path.write_bytes(path.read_bytes()[:200])
    return open_dataset("image_folder", tmp_path, size=(8, 8), validation_share=0)


def test_a_damaged_photograph_does_not_stop_training(photographs: DataSet, caplog: pytest.LogCaptureFixture) -> None:
    model = sf.create_model("spikformer_tiny_digits", in_channels=3, num_classes=2)
    with caplog.at_level(logging.WARNING):
        epochs = list(train(model, photographs, epochs=3, batch_size=16))
    assert [epoch.unreadable for epoch in epochs] == [1, 2, 3]
    assert len(caplog.messages) == 1
    assert "3.jpg cannot be read" in caplog.messages[0]
    measured = measure_accuracy(model, photographs, "test")
    assert (measured.num_samples, measured.unreadable) == (7, 1)


def test_strict_training_stops_at_a_damaged_photograph(photographs: DataSet) -> None:
    model = sf.create_model("spikformer_tiny_digits", in_channels=3, num_classes=2)
    with pytest.raises(ValueError, match=r"3\.jpg cannot be read"):
        list(train(model, photographs, epochs=1, batch_size=16, strict=True))
    with pytest.raises(ValueError, match=r"3\.jpg cannot be read"):
        measure_accuracy(model, photographs, "test", strict=True)


def test_nothing_to_measure(photographs: DataSet, tmp_path: Path) -> None:
    for path in tmp_path.glob("test/*/*.jpg"):
        path.write_bytes(b"")
    with pytest.raises(ValueError, match="No sample of image_folder, test, can be read; `spikformer data check` lists"):
        measure_accuracy(sf.create_model("spikformer_tiny_digits", in_channels=3), photographs, "test")


def test_events_train_too() -> None:
    torch.manual_seed(0)
    model = sf.create_model("spikformer_tiny_digits_dvs")
    epochs = list(train(model, first(open_dataset("digits_dvs"), 128), epochs=6))
    assert epochs[-1].loss < epochs[0].loss - 0.3
