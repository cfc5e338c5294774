"""Evaluation against a plain computation, sample by sample."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.mistakes import field_error, mistake, unknown_name

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.data import DataSet, open_dataset
from spikformer.data.splits import Subset
from spikformer.models import Spikformer
from spikformer.presets import get_preset
from spikformer.training import EvalOptions, Evaluation, evaluate, evaluate_answers, is_silent
from spikformer.training.evaluation import views


@pytest.fixture(scope="module")
def model() -> Spikformer:
    return specimen(get_preset("spikformer_tiny_digits").config)


def readouts(model: Spikformer, data: DataSet, split: str) -> tuple[np.ndarray, np.ndarray]:
    """[T, N, K] and labels, one sample at a time."""
    samples = data.split(split)
    with torch.no_grad():
        found = [
            model.forward_steps(data.prepare(samples[i][None]).to(model.head.weight.dtype)) for i in range(len(samples))
        ]
    return torch.cat(found, 1).numpy(), np.asarray(samples.labels)


def plainly(steps: np.ndarray, labels: np.ndarray) -> Evaluation:
    """What an evaluation should be, written as one would on paper."""
    count, classes = steps.shape[1:]
    logits = steps.mean(0)
    shifted = logits - logits.max(1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    ranks = [int((logits[i] > logits[i, label]).sum()) for i, label in enumerate(labels)]
    confusion = np.zeros((classes, classes), int)
    for i, label in enumerate(labels):
        confusion[label, logits[i].argmax()] += 1
    return Evaluation(
        loss=float(-log_probabilities[np.arange(count), labels].mean()),
        top1=sum(rank < 1 for rank in ranks) / count,
        top5=sum(rank < 5 for rank in ranks) / count,
        after_steps=[float((steps[: t + 1].mean(0).argmax(1) == labels).mean()) for t in range(len(steps))],
        confusion=confusion.tolist(),
        num_samples=count,
        unreadable=0,
        silent=False,
    )


@pytest.mark.parametrize("batch_size", [1, 7, 40, 64])
@pytest.mark.parametrize("split", ["validation", "test"])
def test_it_is_the_plain_computation_whatever_the_batch(
    model: Spikformer, digits: DataSet, split, batch_size: int
) -> None:
    found = evaluate(model, digits, split, EvalOptions(batch_size=batch_size))
    expected = plainly(*readouts(model, digits, split))
    assert found.loss == pytest.approx(expected.loss, rel=1e-12)
    assert replace(found, loss=0.0) == replace(expected, loss=0.0)
    assert 0 < found.top1 < found.top5 < 1, "a network that is right at times, or nothing is shown"


def test_events_too() -> None:
    data = open_dataset("digits_dvs")
    data = replace(data, test=data.test.take(np.arange(24)))
    model = specimen(get_preset("spikformer_tiny_digits_dvs").config)
    found, expected = evaluate(model, data, "test", EvalOptions(batch_size=9)), plainly(*readouts(model, data, "test"))
    assert found.loss == pytest.approx(expected.loss, rel=1e-12)
    assert replace(found, loss=0.0) == replace(expected, loss=0.0)
    assert len(found.after_steps) == 8


def test_the_parts_belong_together(model: Spikformer, digits: DataSet) -> None:
    found = evaluate(model, digits, "test")
    confusion = np.array(found.confusion)
    assert confusion.sum() == found.num_samples == 40
    assert confusion.trace() / 40 == found.top1 == found.after_steps[-1]
    assert confusion.sum(1).tolist() == np.bincount(digits.test.labels, minlength=10).tolist()
    shares = [right / total for right, total in zip(confusion.diagonal(), confusion.sum(1), strict=True)]
    assert found.by_class == pytest.approx(shares)


def test_a_class_without_samples_has_no_share(model: Spikformer, digits: DataSet) -> None:
    zeros = np.flatnonzero(digits.test.labels == 0)
    found = evaluate(model, replace(digits, test=digits.test.take(zeros)), "test")
    assert found.by_class[0] is not None
    assert found.by_class[1:] == [None] * 9


def test_of_two_classes_five_are_always_enough_and_what_cannot_be_read_is_left_out(photographs: DataSet) -> None:
    model = sf.create_model("spikformer_tiny_digits", num_classes=2, in_channels=3)
    found = evaluate(model, photographs, "test", EvalOptions(batch_size=3))
    assert (found.num_samples, found.unreadable) == (7, 1)
    assert found.top5 == 1.0
    assert [sum(row) for row in found.confusion] == [3, 4]


def test_strictly_a_damaged_sample_ends_it_and_the_mode_is_kept(photographs: DataSet) -> None:
    model = sf.create_model("spikformer_tiny_digits", num_classes=2, in_channels=3).train()
    with mistake(ValueError, "cat/3.jpg"):
        evaluate(model, photographs, "test", EvalOptions(strict=True))
    assert model.training


def test_nothing_readable_is_said(photographs: DataSet) -> None:
    damaged = [i for i in range(8) if photographs.test.source(i).endswith("cat/3.jpg")]
    nothing = replace(photographs, test=Subset(photographs.test, np.array(damaged)))
    model = sf.create_model("spikformer_tiny_digits", num_classes=2, in_channels=3)
    with field_error("data", nothing.name, "test", "spikformer data check"):
        evaluate(model, nothing, "test")


def test_too_few_classes_are_said_and_more_are_fine(digits: DataSet) -> None:
    with field_error("num_classes", "digits", 10, 3):
        evaluate(sf.create_model("spikformer_tiny_digits", num_classes=3), digits, "test")
    found = evaluate(sf.create_model("spikformer_tiny_digits", num_classes=12), digits, "test")
    assert found.by_class[10:] == [None, None]


@pytest.mark.parametrize("training", [True, False])
def test_a_model_keeps_its_mode_its_weights_and_its_statistics(digits: DataSet, training: bool) -> None:
    model = sf.create_model("spikformer_tiny_digits").train(training)
    model.stem.train(not training)
    modes = [module.training for module in model.modules()]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    evaluate(model, digits, "test")
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_split_that_is_not_there(model: Spikformer, digits: DataSet) -> None:
    with unknown_name("split", "validation", "digits", "train", "test"):
        evaluate(model, replace(digits, validation=None), "validation")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_network_that_never_fires_is_silent_in_pytorch_and_in_the_engine(digits: DataSet, dtype) -> None:
    model = specimen(get_preset("spikformer_tiny_digits").config, dtype)
    torch.nn.init.uniform_(model.head.bias)
    found = evaluate(model, digits, "test", EvalOptions(batch_size=16))
    assert not found.silent
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            torch.nn.init.constant_(module.bias, -1e3)
    found = evaluate(model, digits, "test", EvalOptions(batch_size=16))
    assert found.silent
    assert sum(any(column) for column in zip(*found.confusion, strict=True)) == 1, "one answer to everything"
    assert torch.equal(model.resting_readout(), model.head.bias)

    engine = sf.compile_engine(model)
    resting = torch.from_numpy(engine.resting_readout())
    assert evaluate_answers(lambda x: torch.from_numpy(engine.forward_steps(x)), digits, "test", resting).silent


def test_one_spike_is_enough_not_to_be_silent() -> None:
    resting = torch.tensor([0.5, -1.0])
    readouts = resting.repeat(4, 3, 1)
    assert is_silent(readouts, resting)
    readouts[2, 1, 0] += 1e-6
    assert not is_silent(readouts, resting)


def test_views_count_one_in_all_and_shift_by_a_pixel() -> None:
    x = torch.arange(12.0).view(1, 1, 3, 4)
    found = views(x, mirror=False)
    assert sum(weight for _, weight in found) == 1
    assert [view.tolist() for view, _ in found] == [
        x.tolist(),
        [[[[0, 0, 1, 2], [0, 0, 1, 2], [4, 4, 5, 6]]]],
        [[[[5, 6, 7, 7], [9, 10, 11, 11], [9, 10, 11, 11]]]],
    ]
    both = views(x, mirror=True)
    assert sum(weight for _, weight in both) == 1
    assert all(torch.equal(both[2 * i + 1][0], view.flip(-1)) for i, (view, _) in enumerate(found))


def test_views_are_answered_beside_the_plain_picture(model: Spikformer, digits: DataSet) -> None:
    plain = evaluate(model, digits, "test")
    found = evaluate(model, digits, "test", EvalOptions(tta=True, batch_size=7))
    assert replace(found, tta_top1=None, loss=0.0) == replace(plain, loss=0.0)
    assert plain.tta_top1 is None
    samples = torch.stack([digits.prepare(digits.test[i][None])[0] for i in range(40)]).double()
    with torch.no_grad():
        logits = sum(weight * model(view) for view, weight in views(samples, mirror=False))  # a 6 has no mirror image
    right = (logits.argmax(1).numpy() == np.asarray(digits.test.labels)).mean()
    assert found.tta_top1 == pytest.approx(right)


def test_events_have_no_views() -> None:
    model = specimen(get_preset("spikformer_tiny_digits_dvs").config)
    with field_error("tta", "digits_dvs"):
        evaluate(model, open_dataset("digits_dvs"), "test", EvalOptions(tta=True))
