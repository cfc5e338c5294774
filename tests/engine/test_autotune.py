"""Density thresholds: measured on the executor, kept in the cache folder, and repaired there."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.engine.drawn import BEST

import spikformer as sf
from spikformer.engine import autotune
from spikformer.engine.autotune import KINDS, density_thresholds, measure_threshold


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(autotune, "_known", {})
    return tmp_path / "cache" / "density_thresholds.json"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement that takes no time, for tests of what becomes of it."""
    monkeypatch.setattr(autotune, "measure_threshold", lambda kind, *_: (1 + KINDS.index(kind)) / 8)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process would."""
    monkeypatch.setattr(autotune, "_known", {})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [1, 4])
def test_it_is_a_density(kind: str, steps: int) -> None:
    assert 0 < measure_threshold(kind, BEST, steps) <= 1


class SlowMachine:
    """Stands for the clock and the engine of a machine where a dense product takes 10 s, and events their share."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
        self.now, self.share, self.calls = 0.0, share, 0
        monkeypatch.setattr(autotune.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(autotune, "_seconds", self.seconds)

    def seconds(self, engine: object, frames: np.ndarray, mode: str) -> float:
        taken = 10.0 if mode == "dense" else 10.0 * self.share * float(frames.mean())
        self.now += taken
        self.calls += 1
        return taken


@pytest.mark.parametrize(("share", "expected"), [(4.0, 0.25), (0.5, 1.0)])
def test_a_slow_machine_is_measured_once_and_the_rest_is_a_line(
    monkeypatch: pytest.MonkeyPatch, share: float, expected: float
) -> None:
    machine = SlowMachine(monkeypatch, share)
    assert measure_threshold("spikes", "scalar", 4) == pytest.approx(expected, rel=0.1)  # spikes are drawn
    assert machine.calls == 2


@pytest.mark.parametrize("kind", KINDS)
def test_no_instruction_set_takes_long(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of the executor at most, and what one measurement takes."""
    spent: list[float] = []
    seconds = autotune._seconds
    monkeypatch.setattr(autotune, "_seconds", lambda *given: spent.append(seconds(*given)) or spent[-1])
    assert 0 < measure_threshold(kind, "scalar", 4) <= 1
    assert sum(spent[:-4]) < 1


def test_it_is_measured_once_for_a_machine(cache: Path, case, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    engine(x)
    ((key, kept),) = json.loads(cache.read_text()).items()
    assert f", {engine.instructions}, 4 steps, spikformer {sf.__version__}" in key
    assert density_thresholds(engine.instructions, 4) == tuple(kept)
    forget(monkeypatch)
    cache.write_text(json.dumps({key: [0.375, 0.5, 0.625], "another machine": [0.5, 0.5, 0.5]}))
    assert density_thresholds(engine.instructions, 4) == (0.375, 0.5, 0.625)


@pytest.mark.usefixtures("at_once")
def test_a_stream_has_its_own(cache: Path, case) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    engine.step(x, engine.initial_state(len(x)))
    (key,) = json.loads(cache.read_text())
    assert ", 1 steps, " in key
    engine(x)
    assert len(json.loads(cache.read_text())) == 2


@pytest.mark.parametrize("mode", ["events", "dense"])
def test_a_mode_that_is_forced_needs_none(cache: Path, case, mode: str) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    engine.mode = mode
    engine(x)
    assert not cache.exists()


def test_one_that_is_given_is_for_streams_too(cache: Path, case) -> None:
    model, x = case()
    engine = sf.compile_engine(model)
    engine.density_threshold = 0.5
    engine(x)
    engine.step(x, engine.initial_state(len(x)))
    assert engine.density_threshold == 0.5
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
        '{"KEY": [7.0, 0.5, 0.5]}',
        '{"KEY": [0.5, 0.5]}',
        '{"KEY": NaN}',
        '{"KEY": 1e999}',
        '{"KEY": true}',
        '{"KEY": null}',
        '{"KEY": ' + "9" * 5_000 + "}",
        '{"KEY": [0.5, 0.5, 0.5], "padding": "' + "x" * 2**17 + '"}',
        "\udcff",
    ],
    ids=lambda content: content[:16],
)
@pytest.mark.usefixtures("at_once")
def test_a_damaged_file_is_measured_and_written_again(
    cache: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    density_thresholds(BEST, 4)
    (key,) = json.loads(cache.read_text())
    forget(monkeypatch)
    cache.write_bytes(content.replace("KEY", key).encode(errors="surrogateescape"))
    found = density_thresholds(BEST, 4)
    assert all(0 < density <= 1 for density in found)
    assert json.loads(cache.read_text())[key] == list(found)


@pytest.mark.usefixtures("at_once")
def test_numbers_of_other_processors_stay(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text(json.dumps({"another machine": [0.5, 0.5, 0.5], "damaged": [7.0, 0.5, 0.5]}))
    found = density_thresholds(BEST, 4)
    kept = json.loads(cache.read_text())
    assert sorted(kept.values()) == sorted([[0.5, 0.5, 0.5], list(found)])
    assert kept["another machine"] == [0.5, 0.5, 0.5]


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
@pytest.mark.usefixtures("at_once")
def test_a_cache_that_is_no_file_does_no_harm(cache: Path, case, spoil: Callable[[Path], None]) -> None:
    spoil(cache)
    model, x = case()
    engine = sf.compile_engine(model)
    assert np.isfinite(engine(x)).all()


@pytest.mark.usefixtures("at_once")
def test_a_home_that_nobody_knows_does_no_harm(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPIKFORMER_CACHE", "~nobody-of-this-name/cache")
    assert all(0 < density <= 1 for density in density_thresholds(BEST, 4))
