"""Anytime inference: the same as looking at every prefix of the steps, by engines and by networks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.mistakes import field_error

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.engine.anytime import AnytimeAnswers, largest_share
from spikformer.models import build_model
from spikformer.runs.predict import answer_with_model

STATIC, EVENTS = "spikformer_tiny_digits", "spikformer_tiny_digits_dvs"


def by_hand(readouts: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Logits and steps from the readouts [T, B, K] of all steps."""
    logits, steps = [], []
    for sample in readouts.swapaxes(0, 1):
        for number in range(1, len(sample) + 1):
            mean = sample[:number].astype(np.float64).mean(0)
            shares = np.exp(mean) / np.exp(mean).sum()
            if shares.max() >= confidence:
                break
        logits.append(mean)
        steps.append(number)
    return np.stack(logits), np.array(steps)


@pytest.mark.parametrize("name", [STATIC, EVENTS])
@pytest.mark.parametrize("image_size", ["fixed", "open"])
def test_an_engine_leaves_at_the_first_sure_step(name: str, image_size: str) -> None:
    model = specimen(shrunk(name), dtype=torch.float32)
    if image_size == "open":
        weights = model.state_dict()
        model = build_model(model.config.override(image_size=None)).eval()
        model.load_state_dict(weights)
    engine = sf.compile_engine(model)
    engine.mode = "events"
    x = frames_for(shrunk(name), 24, dtype=torch.float32).numpy()
    readouts = engine.forward_steps(x)
    between = np.median(largest_share(readouts.astype(np.float64).mean(0)))
    found = engine.answer_anytime(x, float(between))
    logits, steps = by_hand(readouts, float(between))
    assert found.num_steps.tolist() == steps.tolist()
    assert len({*steps.tolist()}) > 1, "some leave early and some do not, or nothing is shown"
    np.testing.assert_allclose(found.logits, logits, rtol=0, atol=1e-6)
    assert not found.silent.any()


@pytest.mark.parametrize("name", [STATIC, EVENTS])
def test_a_network_leaves_when_its_engine_does(name: str) -> None:
    model = specimen(shrunk(name))
    x = frames_for(model.config, 16)
    with torch.no_grad():
        readouts = model.forward_steps(x).numpy()
    between = float(np.median(largest_share(readouts.mean(0))))
    found = answer_with_model(model, x.numpy(), between)
    logits, steps = by_hand(readouts, between)
    assert found.num_steps.tolist() == steps.tolist()
    np.testing.assert_allclose(found.logits, logits, rtol=0, atol=1e-12)


def test_the_ends_of_the_scale() -> None:
    engine = sf.compile_engine(specimen(shrunk(STATIC), dtype=torch.float32))
    x = frames_for(shrunk(STATIC), 5, dtype=torch.float32).numpy()
    first = engine.answer_anytime(x, 1e-9)
    assert first.num_steps.tolist() == [1] * 5
    whole = engine.answer_anytime(x, 1.0)
    assert whole.num_steps.tolist() == [engine.program.time_steps] * 5
    np.testing.assert_allclose(whole.logits, engine(x), rtol=0, atol=1e-5)
    for wrong in (0, 1.1, -1, float("nan"), "0.9", True):
        with field_error("confidence"):
            engine.answer_anytime(x, wrong)


def test_predictions_say_how_many_steps_they_took(digit_network) -> None:
    pictures = [np.full((1, 8, 8), value, np.uint8) for value in (0, 100, 255)]
    engine = sf.compile_engine(digit_network)
    for network in (engine, digit_network):
        plain = sf.predict(network, pictures)
        assert [each.num_steps for each in plain] == [digit_network.config.time_steps] * 3
        early = sf.predict(network, pictures, confidence=1e-6)
        assert [each.num_steps for each in early] == [1] * 3
        with field_error("confidence"):
            sf.predict(network, pictures, confidence=2)


def test_predictions_by_the_confidence_of_the_card(digit_network, tmp_path: Path) -> None:
    pictures = [np.full((1, 8, 8), value, np.uint8) for value in (0, 100, 255)]
    for network in (sf.compile_engine(digit_network), digit_network):
        with field_error("confidence"):
            sf.predict(network, pictures, confidence="card")
    digit_network.card = replace(digit_network.card, confidence=1e-6)
    engine = sf.compile_engine(digit_network)
    engine.save(tmp_path / "net.engine")
    for network in (engine, sf.load_engine(tmp_path / "net.engine"), digit_network):
        assert [each.num_steps for each in sf.predict(network, pictures, confidence="card")] == [1] * 3
        assert [each.num_steps for each in sf.predict(network, pictures)] == [digit_network.config.time_steps] * 3
    assert [each.num_steps for each in engine.predict(pictures, confidence="card")] == [1] * 3


@pytest.fixture
def digit_network():
    from spikformer.data import open_dataset

    model = specimen(sf.create_model(STATIC).config, dtype=torch.float32)
    model.card = open_dataset("digits").card("spikformer")
    return model


def test_a_silent_sample_says_so() -> None:
    model = specimen(shrunk(STATIC), dtype=torch.float32)
    for norm in model.modules():
        if isinstance(norm, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            torch.nn.init.constant_(norm.bias, -100.0)
    found = sf.compile_engine(model).answer_anytime(frames_for(model.config, 3, dtype=torch.float32).numpy(), 0.99)
    assert isinstance(found, AnytimeAnswers)
    assert found.silent.all()
