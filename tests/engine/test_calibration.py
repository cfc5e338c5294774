"""Where adding events stops to pay: measured, kept, and shown."""

import json
from pathlib import Path

import pytest

import spikformer as sf
from spikformer.engine import calibration
from spikformer.engine.calibration import crossover_of, measure_crossover


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(calibration, "_measured", {})
    return tmp_path / "cache" / "crossover.json"


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process would."""
    monkeypatch.setattr(calibration, "_measured", {})


@pytest.mark.parametrize("steps", [1, 4])
def test_it_is_a_density(steps: int) -> None:
    assert 0 < measure_crossover("best", steps) <= 1


def test_it_is_measured_once_for_a_machine(cache: Path, case, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = sf.compile_engine(case()[0])
    assert engine.crossover == crossover_of(engine.instructions, 4)
    ((key, kept),) = json.loads(cache.read_text()).items()
    assert engine.crossover == kept
    assert f", {engine.instructions}, 4 steps, spikformer {sf.__version__}" in key
    forget(monkeypatch)
    cache.write_text(json.dumps({key: 0.375, "another machine": 0.5}))
    assert sf.compile_engine(case()[0]).crossover == 0.375


def test_a_stream_has_its_own(cache: Path, case) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    engine.step(x, engine.initial_state(len(x)))
    (key,) = json.loads(cache.read_text())
    assert ", 1 steps, " in key
    engine(x)
    assert len(json.loads(cache.read_text())) == 2


@pytest.mark.parametrize("way", ["events", "dense"])
def test_a_way_that_is_forced_needs_none(cache: Path, case, way: str) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    engine.way = way
    engine(x)
    assert not cache.exists()


def test_one_that_is_given_is_for_streams_too(cache: Path, case) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    engine.crossover = 0.5
    engine(x)
    engine.step(x, engine.initial_state(len(x)))
    assert engine.crossover == 0.5
    assert not cache.exists()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"KEY": "much"}', '{"KEY": 7.0}'])
def test_a_damaged_file_is_measured_and_written_again(
    cache: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crossover_of("best", 4)
    (key,) = json.loads(cache.read_text())
    forget(monkeypatch)
    cache.write_text(content.replace("KEY", key))
    assert 0 < crossover_of("best", 4) <= 1
    assert 0 < json.loads(cache.read_text())[key] <= 1


def test_a_folder_that_cannot_be_written_to_does_no_harm(cache: Path) -> None:
    cache.parent.parent.joinpath("cache").write_text("a file, where a folder should be")
    assert 0 < crossover_of("best", 4) <= 1
