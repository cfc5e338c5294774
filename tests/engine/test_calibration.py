"""Where adding events stops to pay: measured, kept, and shown."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.engine.drawn import BEST

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
    assert 0 < measure_crossover(BEST, steps) <= 1


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


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "[" * 50_000,
        '{"KEY": ' * 5_000,
        '{"KEY": "much"}',
        '{"KEY": 7.0}',
        '{"KEY": NaN}',
        '{"KEY": 1e999}',
        '{"KEY": true}',
        '{"KEY": null}',
        '{"KEY": ' + "9" * 5_000 + "}",
        '{"KEY": 0.5, "padding": "' + "x" * 2**17 + '"}',
        "\udcff",
    ],
    ids=lambda content: content[:16],
)
def test_a_damaged_file_is_measured_and_written_again(
    cache: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crossover_of(BEST, 4)
    (key,) = json.loads(cache.read_text())
    forget(monkeypatch)
    cache.write_bytes(content.replace("KEY", key).encode(errors="surrogateescape"))
    assert 0 < crossover_of(BEST, 4) <= 1
    assert 0 < json.loads(cache.read_text())[key] <= 1


def test_numbers_of_other_processors_stay(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text(json.dumps({"another machine": 0.5, "damaged": 7.0}))
    found = crossover_of(BEST, 4)
    kept = json.loads(cache.read_text())
    assert sorted(kept.values()) == sorted([0.5, found])
    assert kept["another machine"] == 0.5


def as_file(cache: Path) -> None:
    cache.parent.write_text("a file, where a folder should be")


def as_folder(cache: Path) -> None:
    cache.mkdir(parents=True)


def as_pipe(cache: Path) -> None:
    cache.parent.mkdir()
    os.mkfifo(cache)


def as_endless(cache: Path) -> None:
    cache.parent.mkdir()
    cache.symlink_to("/dev/zero")


@pytest.mark.parametrize("spoil", [as_file, as_folder, as_pipe, as_endless])
def test_a_cache_that_is_no_file_does_no_harm(cache: Path, case, spoil: Callable[[Path], None]) -> None:
    spoil(cache)
    model, x = case()
    engine = sf.compile_engine(model)
    assert np.isfinite(engine(x)).all()
    assert 0 < engine.crossover <= 1


def test_a_home_that_nobody_knows_does_no_harm(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPIKFORMER_CACHE", "~nobody-of-this-name/cache")
    assert 0 < crossover_of(BEST, 4) <= 1
