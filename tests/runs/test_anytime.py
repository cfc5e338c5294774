"""A confidence chosen on validation data and measured on test data: what the engine does, at what cost."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.mistakes import field_error, file_error

import spikformer as sf
from spikformer.analysis.anytime import AnytimeReport, StepAnswers
from spikformer.analysis.specimens import specimen
from spikformer.data import DataSet, open_dataset
from spikformer.engine.anytime import largest_share, mean_readouts
from spikformer.models import SpikingNetwork
from spikformer.presets import get_preset
from spikformer.runs.anytime import anytime, planned_samples, store_confidence
from spikformer.runs.measure import batches

FEW = 12
NETWORKS = {"digits": "spikformer_tiny_digits", "digits_dvs": "spikformer_tiny_digits_dvs"}


def sure_network(name: str) -> tuple[SpikingNetwork, DataSet]:
    """A network that has learnt nothing, and is sure of it: of some samples sooner than of others."""
    config = get_preset(NETWORKS[name]).config.override(time_steps=3)
    model = specimen(config, torch.float32)
    with torch.no_grad():
        model.head.weight *= 10
    steps = {"time_steps": 3} if name == "digits_dvs" else {}
    data = open_dataset(name, size=config.image_size, **steps)
    model.card = data.card("spikformer")
    return model, data


@pytest.fixture(scope="module", params=NETWORKS)
def measured(request: pytest.FixtureRequest) -> tuple[SpikingNetwork, DataSet, AnytimeReport]:
    model, data = sure_network(request.param)
    report = anytime(model, data=data, max_samples=FEW, threads=1, confidences=(1e-6, 0.5, 1.0))
    return model, data, report


@pytest.mark.parametrize("name", NETWORKS)
def test_exits_by_the_readouts_are_those_of_the_engine(name: str) -> None:
    model, data = sure_network(name)
    engine = sf.compile_engine(model, 1)
    engine.mode = "events"  # one step and all at once have the same bits
    (x,) = batches(model, data, "test", 32, 32)
    labels = np.arange(32) % 10
    means = mean_readouts(engine.forward_steps(x))
    answers = StepAnswers(largest_share(means), means.argmax(-1) == labels)
    seen = set()
    for confidence in (1e-6, 0.4, 0.6, 0.8, 1.0):
        found = engine.answer_anytime(x, confidence)
        seen |= {*found.num_steps.tolist()}
        assert found.num_steps.tolist() == answers.num_steps(confidence).tolist()
        assert np.mean(found.logits.argmax(1) == labels) == pytest.approx(answers.at(confidence).accuracy)
    assert seen == {1, 2, 3}, "or nothing is shown"


def test_every_confidence_is_a_point_by_rising_confidence(measured) -> None:
    _, _, report = measured
    asked = [each.point.confidence for each in report.exits]
    assert asked == sorted({1e-6, 0.5, 1.0} | {report.confidence} - {None})
    first, last = report.exits[0].point, report.all_steps.point
    assert (first.mean_steps, first.leaving) == (1.0, (1.0, 0.0, 0.0))
    assert (last.confidence, last.mean_steps, last.leaving) == (None, 3.0, (0.0, 0.0, 1.0))
    steps = [point.mean_steps for point in report.curve]
    assert steps == sorted(steps)
    assert report.validation.accuracy >= report.validation_all.accuracy - report.tolerance
    assert report.chosen.point.confidence == report.confidence
    assert (report.num_samples, report.batch_size, report.num_threads) == (FEW, FEW, 1)
    assert report.machine
    assert not report.silent
    assert all(each.single_ms > 0 and each.batch_ms > 0 for each in (*report.exits, report.all_steps))


def test_energy_is_that_of_the_steps_taken(measured) -> None:
    model, data, report = measured
    (x,) = batches(model, data, "test", FEW, FEW)
    for found, steps in ((report.exits[0], 1), (report.all_steps, 3)):
        shorter = specimen(model.config.override(time_steps=steps), torch.float32)
        shorter.load_state_dict(model.state_dict())
        expected = sf.measure_energy(shorter, [x[:steps] if data.events else x])
        assert found.paper_energy_mj == pytest.approx(expected.energy_mj("paper"))
        assert found.strict_energy_mj == pytest.approx(expected.energy_mj("strict"))
    between = next(each for each in report.exits if each.point.confidence == 0.5)
    assert report.exits[0].paper_energy_mj <= between.paper_energy_mj <= report.all_steps.paper_energy_mj


def test_progress_counts_what_was_planned() -> None:
    model, data = sure_network("digits")
    done: list[int] = []
    anytime(model, data=data, max_samples=4, threads=1, confidences=(0.5,), on_batch=done.append)
    planned = planned_samples(data, 4, num_confidences=1)
    assert planned - 4 <= sum(done) <= planned, "4 less where no confidence is chosen"


def test_mistakes(tmp_path: Path) -> None:
    model, data = sure_network("digits")
    with field_error("validation", "digits"):
        anytime(model, data=replace(data, validation=None))
    with field_error("tolerance"):
        anytime(model, data=data, tolerance=-1, max_samples=4)
    with field_error("max_samples"):
        anytime(model, data=data, max_samples=0)
    with field_error("confidences"):
        anytime(model, data=data, confidences=(2,))
    once = specimen(get_preset("spikformer_tiny_digits").config.override(time_steps=1), torch.float32)
    once.card = model.card
    with field_error("time_steps"):
        anytime(once, data=data)
    sf.compile_engine(model, 1).save(tmp_path / "net.engine")
    with file_error(tmp_path / "net.engine", "unfit"):
        anytime(tmp_path / "net.engine")


def test_a_stored_confidence_is_found_and_taken_out_again(tmp_path: Path) -> None:
    model, _ = sure_network("digits")
    sf.save(model, tmp_path / "best.safetensors")
    before = (tmp_path / "best.safetensors").read_bytes()
    store_confidence(tmp_path, 0.75)
    assert sf.load(tmp_path / "best.safetensors").card == replace(model.card, confidence=0.75)
    assert sf.compile_engine(tmp_path / "best.safetensors", 1).card.confidence == 0.75
    store_confidence(tmp_path, None)
    assert (tmp_path / "best.safetensors").read_bytes() == before
