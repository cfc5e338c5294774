"""Every write, rename and fsync of ours may fail: the old or the new file is there, whole, and nothing else."""

import errno
import json
import os
import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.faults import BROKEN, FULL, fail_each, fault
from tests.mistakes import mistake

import spikformer as sf
from spikformer.analysis.golden import GOLDEN_FOLDER
from spikformer.cli import main
from spikformer.data import open_dataset
from spikformer.data.events.samples import FrameCache
from spikformer.data.unpacking import unpack
from spikformer.engine import autotune
from spikformer.io import write_atomically
from spikformer.models import Spikformer
from spikformer.runs.writer import RunWriter
from spikformer.training import get_recipe
from spikformer.training.optim import build_optimiser
from spikformer.training.progress import Progress
from spikformer.training.state import load_state, save_state

BOTH = pytest.mark.parametrize("code", [FULL, BROKEN], ids=["full", "broken"])
SMALL = {"embed_dim": 16, "num_heads": 2, "depth": 1}


def network(seed: int) -> Spikformer:
    torch.manual_seed(seed)
    model = sf.create_model("spikformer_tiny_digits", **SMALL).eval()
    model.card = replace(model.card, settings={"seed": seed})
    return model


OLD, NEW = network(1), network(2)


def replacing(path: Path, write: Callable[[], object], read: Callable[[], object], code: int) -> int:
    """Replace an old file with a new one: `read` says 1 of the old and 2 of the new."""
    old = path.read_bytes()

    def check(failed: bool) -> None:
        found = read()
        assert found in (1, 2)
        assert failed or found == 2
        assert [name for name in os.listdir(path.parent) if name.startswith(".")] == []

    return fail_each(path.parent, lambda: path.write_bytes(old), write, check, code)


def test_the_harness_fails_what_it_should(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "file"
    number = fail_each(
        path.parent, lambda: None, lambda: write_atomically(path, b"x" * 100_000), lambda _: None, code=BROKEN
    )
    assert number == 5, "create, write, sync the file, rename, sync the folder"
    with fault(path.parent, 1, FULL) as faults, mistake(OSError, os.strerror(errno.ENOSPC)):
        write_atomically(path, b"")
    assert faults.calls >= 1
    with fault(path.parent, 1, FULL) as faults:
        write_atomically(tmp_path / "file", b"")
    assert faults.calls == 0, "it is in another folder"


@BOTH
def test_saving_weights(tmp_path: Path, code: int) -> None:
    path = tmp_path / "model.safetensors"
    sf.save(OLD, path)
    number = replacing(path, lambda: sf.save(NEW, path), lambda: sf.load(path).card.settings["seed"], code)
    assert number >= 5


@BOTH
def test_saving_an_engine(tmp_path: Path, code: int) -> None:
    path = tmp_path / "net.engine"
    engines = [sf.compile_engine(model, num_threads=1) for model in (OLD, NEW)]
    engines[0].save(path)
    number = replacing(
        path, lambda: engines[1].save(path), lambda: sf.load_engine(path, num_threads=1).card.settings["seed"], code
    )
    assert number >= 5


@BOTH
def test_saving_a_state_and_resuming(tmp_path: Path, code: int) -> None:
    path = tmp_path / "state.safetensors"

    def save(step: int) -> None:
        save_state(path, {}, Progress(iteration=step), OLD, build_optimiser(OLD, 0.0), NEW, None)

    def resume() -> int:
        state, fresh = load_state(path), network(3)
        state.restore(fresh, build_optimiser(fresh, 0.0), None)
        assert torch.equal(fresh.head.weight, OLD.head.weight)
        return state.progress.iteration

    save(1)
    assert replacing(path, lambda: save(2), resume, code) >= 5


def test_what_an_epoch_leaves(tmp_path: Path) -> None:
    folder, data, recipe = RunWriter(tmp_path / "run"), open_dataset("digits"), get_recipe("spikformer_tiny_digits")
    rows = [{"epoch": 1.0, "train_loss": 2.0}, {"epoch": 2.0, "train_loss": 1.0}]
    folder.path.mkdir()

    def write(model: Spikformer, epochs: int) -> None:
        folder.describe(recipe, f"epochs {epochs}", None, data)
        folder.keep(model, rows[:epochs], best=True)

    def check(failed: bool) -> None:
        recipes, metrics = folder.description.recipe, folder.metrics
        json.loads((folder.path / "environment.json").read_text())
        found = {
            int(recipes.split()[1]),
            sf.load(folder.best).card.settings["seed"],
            sf.load(folder.last).card.settings["seed"],
        }
        found.add(len(metrics))
        assert found <= {1, 2}
        assert failed or found == {2}
        assert [name for name in os.listdir(folder.path) if name.startswith(".")] == []

    write(OLD, 1)
    before = {path: path.read_bytes() for path in folder.path.iterdir()}
    number = fail_each(
        folder.path,
        lambda: [path.write_bytes(content) for path, content in before.items()],
        lambda: write(NEW, 2),
        check,
        BROKEN,
    )
    assert number >= 5 * 5


@pytest.mark.slow
def test_a_run_that_resumes(tmp_path: Path) -> None:
    """Whatever fails, the run's files are whole, and the next command ends at the same weights."""
    settings = {"epochs": 2, "max_samples": 32, "batch_size": 32, "model": SMALL, "threads": 1}
    whole = sf.train("spikformer_tiny_digits", output=tmp_path / "whole", **settings)
    begun = tmp_path / "begun"
    sf.train("spikformer_tiny_digits", output=begun, stop=lambda: True, **settings)
    assert sf.Run(begun).results is None
    run = tmp_path / "run"

    def prepare() -> None:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(begun, run)

    def check(failed: bool) -> None:
        for path in run.glob("*.safetensors"):
            load_state(path) if path.name == "state.safetensors" else sf.load(path)
        assert [name for name in os.listdir(run) if name.startswith(".")] == []
        if not failed:
            found = sf.load(run / "last.safetensors").state_dict()
            assert all(torch.equal(value, found[name]) for name, value in sf.load(whole.last).state_dict().items())

    def resume() -> None:
        sf.train(output=run, resume=True, threads=1)

    assert fail_each(run, prepare, resume, check, BROKEN) >= 50


@pytest.mark.slow
def test_importing_and_compiling(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As commands, which end with 1 and a message."""
    weights, engine = tmp_path / "imported.safetensors", tmp_path / "net.engine"
    imports = ["import", str(GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar"), "--num-heads", "4"]
    commands = [[*imports, "--output", str(weights)], ["compile", str(weights), "--output", str(engine)]]

    def run(words: list[str]) -> None:
        capsys.readouterr()
        if returned := main(words):
            said = capsys.readouterr().err
            assert returned == 1, said
            raise OSError(said)

    for words, path, load in zip(commands, (weights, engine), (sf.load, sf.load_engine), strict=True):

        def check(failed: bool, path: Path = path, load: Callable[[Path], object] = load) -> None:
            if path.exists():
                load(path)
            assert failed or path.exists()
            assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []

        number = fail_each(
            tmp_path,
            lambda path=path: path.unlink(missing_ok=True),  # type: ignore[misc]
            lambda words=words: run(words),  # type: ignore[misc]
            check,
            FULL,
        )
        assert number >= 5


@BOTH
def test_the_cache_of_frames(tmp_path: Path, code: int) -> None:
    """It continues without what it cannot keep, so there is no error."""
    frames = np.arange(64, dtype=np.uint8).reshape(2, 2, 4, 4)

    def put() -> None:
        cache = FrameCache(tmp_path, 10**6)
        if cache.is_usable():
            cache.put("key", frames)

    def check(failed: bool) -> None:
        assert not failed
        found = FrameCache(tmp_path, 10**6).get("key")
        assert found is None or np.array_equal(found, frames)
        assert [name for name in os.listdir(tmp_path) if name.endswith("tmp")] == []

    def clear() -> None:
        for path in tmp_path.iterdir():
            path.unlink()

    assert fail_each(tmp_path, clear, put, check, code) == 5, "the first of the two files is empty"


@BOTH
def test_the_measured_density_thresholds(tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A measurement that cannot be kept is a measurement."""
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path))
    monkeypatch.setattr(autotune, "measure_threshold", lambda kind, *_: (1 + autotune.KINDS.index(kind)) / 4)  # at once
    found: list[tuple[float, ...]] = []

    def ask() -> None:
        monkeypatch.setattr(autotune, "_known", {})
        found.append(autotune.density_thresholds("scalar", 1))

    def check(failed: bool) -> None:
        assert not failed
        assert found[-1] == (0.25, 0.5, 0.75)
        assert set(os.listdir(tmp_path)) <= {path.name}
        if os.listdir(tmp_path):
            assert list(json.loads(path.read_text()).values()) == [list(found[-1])]

    path = tmp_path / "density_thresholds.json"
    assert fail_each(tmp_path, lambda: path.unlink(missing_ok=True), ask, check, code) >= 3


@BOTH
def test_unpacking_an_archive(tmp_path: Path, code: int) -> None:
    archive, folder = tmp_path / "archive.zip", tmp_path / "out"
    with zipfile.ZipFile(archive, "w") as packed:
        for name in ("a.bin", "b.bin"):
            packed.writestr(name, bytes(100_000))

    def check(failed: bool) -> None:
        assert failed or folder.exists()
        assert set(os.listdir(tmp_path)) <= {"archive.zip", "out"}
        if folder.exists():
            assert [path.stat().st_size for path in sorted(folder.iterdir())] == [100_000, 100_000]

    def clear() -> None:
        for path in folder.glob("*"):
            path.unlink()
        if folder.exists():
            folder.rmdir()

    number = fail_each(tmp_path, clear, lambda: unpack(archive, folder, (".bin",)), check, code)
    assert number >= 5, "two files created and written, and a folder renamed"
