"""The state of a run: to the bit, whole or not at all, and anything else raises an error with a message."""

import errno
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from tests.mistakes import file_error, mistake

import spikformer as sf
from spikformer.errors import FileError
from spikformer.models import Spikformer
from spikformer.training import Recipe, get_recipe
from spikformer.training.optim import WeightAverage, build_optimiser, set_learning_rate
from spikformer.training.progress import Progress
from spikformer.training.state import load_state, save_state

RECIPE = get_recipe("spikformer_tiny_digits")
PROGRESS = Progress(
    epoch=2,
    batch=1,
    iteration=5,
    loss_sum=0.1 + 0.2,
    num_correct=3,
    num_samples=64,
    unreadable=1,
    seconds=1e-9,
    epoch_seconds=7.25,
    best_epoch=1,
    best_accuracy=1 / 3,
    history=[{"epoch": 1, "train_loss": 2.302585092994046}, {"epoch": 2, "train_loss": 1e-300}],
)
SCALER = {"scale": 3.5, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 2}


def train_a_little(model: Spikformer, optimiser: torch.optim.Optimizer, steps: int = 2) -> None:
    """On noise that is always the same."""
    generator = torch.Generator().manual_seed(3)
    set_learning_rate(optimiser, 1e-2)
    for _ in range(steps):
        x = torch.randn(8, 1, 8, 8, generator=generator).to(model.head.weight.dtype)
        F.cross_entropy(model.train()(x), torch.arange(8)).backward()
        optimiser.step()
        optimiser.zero_grad()


def trained(dtype: torch.dtype = torch.float32, **overrides) -> tuple[Spikformer, torch.optim.Optimizer, Spikformer]:
    model = sf.create_model("spikformer_tiny_digits", **overrides).to(dtype)
    optimiser = build_optimiser(model, 0.06)
    average = WeightAverage(model, 0.9)
    train_a_little(model, optimiser)
    average.update(model, 1)
    return model, optimiser, average.model


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("state") / "state.safetensors"
    model, optimiser, average = trained()
    save_state(path, RECIPE.to_dict(), PROGRESS, model, optimiser, average, SCALER)
    return path


def contents(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())


def same(one: Spikformer, other: Spikformer) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("overrides", [{}, {"neuron": "plif"}, {"attention": "random"}], ids=str)
def test_what_is_saved_comes_back_to_the_bit_and_trains_on_alike(dtype, overrides: dict, tmp_path: Path) -> None:
    model, optimiser, average = trained(dtype, **overrides)
    path = tmp_path / "state.safetensors"
    save_state(path, RECIPE.to_dict(), PROGRESS, model, optimiser, average, SCALER)
    state = load_state(path)
    assert state.progress == PROGRESS
    assert state.scaler == SCALER
    assert Recipe.from_dict(state.recipe) == RECIPE
    torch.manual_seed(99)
    fresh = sf.create_model("spikformer_tiny_digits", **overrides).to(dtype)
    fresh_optimiser, fresh_average = build_optimiser(fresh, 0.06), WeightAverage(fresh, 0.9).model
    assert not same(fresh, model)
    state.restore(fresh, fresh_optimiser, fresh_average)
    assert same(fresh, model)
    assert same(fresh_average, average)
    for ours, theirs in zip(model.parameters(), fresh.parameters(), strict=True):
        before, after = optimiser.state.get(ours, {}), fresh_optimiser.state.get(theirs, {})
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) for key in before)
    train_a_little(model, optimiser)
    train_a_little(fresh, fresh_optimiser)
    assert same(fresh, model)


def test_a_run_that_has_not_begun_has_no_moments_yet(tmp_path: Path) -> None:
    model = sf.create_model("spikformer_tiny_digits")
    path = tmp_path / "state.safetensors"
    save_state(path, RECIPE.to_dict(), Progress(), model, build_optimiser(model, 0.0), None, None)
    state = load_state(path)
    assert state.progress == Progress()
    assert state.scaler is None
    fresh = sf.create_model("spikformer_tiny_digits")
    optimiser = build_optimiser(fresh, 0.0)
    state.restore(fresh, optimiser, None)
    assert not optimiser.state
    assert same(fresh, model)


def test_an_epoch_that_ends_leaves_a_row_and_empties_its_sums() -> None:
    progress = Progress(
        epoch=1, batch=7, iteration=15, loss_sum=2.0, num_correct=3, num_samples=4, seconds=9.0, epoch_seconds=2.0
    )
    assert not progress.finish_epoch({"epoch": 2}), "without validation none is best"
    assert progress == Progress(epoch=2, iteration=15, seconds=9.0, history=[{"epoch": 2}])


def test_a_missing_file_a_folder_and_weights_are_no_state(tmp_path: Path) -> None:
    with mistake(FileNotFoundError, tmp_path / "state.safetensors"):
        load_state(tmp_path / "state.safetensors")
    with mistake(IsADirectoryError, tmp_path):
        load_state(tmp_path)
    sf.save(sf.create_model("spikformer_tiny_digits"), tmp_path / "last.safetensors")
    with file_error(tmp_path / "last.safetensors", "foreign"):
        load_state(tmp_path / "last.safetensors")
    save_file({"a": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    with file_error(tmp_path / "foreign.safetensors", "foreign"):
        load_state(tmp_path / "foreign.safetensors")


@pytest.mark.parametrize("keep", [0, 4, 100, 5000, -1])
def test_a_truncated_file(saved: Path, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "short.safetensors"
    path.write_bytes(saved.read_bytes()[:keep])
    with file_error(path):
        load_state(path)


@pytest.mark.parametrize("key", ["recipe", "progress", "scaler"])
@pytest.mark.parametrize("text", [None, "{", "[]", "7", '{"epoch": "two"}', '{"flux": 1}', "[" * 100_000])
def test_a_position_that_cannot_be_read(saved: Path, tmp_path: Path, key: str, text: str | None) -> None:
    if text is not None and text.startswith("{") and len(text) > 1 and key == "recipe":
        return  # what is in it is for `Recipe` to judge
    tensors, metadata = contents(saved)
    del metadata[key]
    save_file(tensors, tmp_path / "state.safetensors", metadata | ({} if text is None else {key: text}))
    with file_error(tmp_path / "state.safetensors", at=key):
        load_state(tmp_path / "state.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": -1},
        {"epoch": 1.0},
        {"epoch": 3},
        {"epoch": True},
        {"batch": None},
        {"iteration": "5"},
        {"iteration": 10**400},
        {"loss_sum": "0.3"},
        {"loss_sum": float("nan")},
        {"seconds": None},
        {"best_epoch": 3},
        {"best_epoch": None},
        {"best_accuracy": "high"},
        {"history": 3},
        {"history": [1, 2]},
        {"history": [{"epoch": 1}, {"epoch": 2, "train_loss": 1.0}]},
        {"history": [{"epoch": 1, "train_loss": "low"}, {"epoch": 2, "train_loss": 1.0}]},
        {"history": [{"epoch": 2, "train_loss": 1.0}, {"epoch": 1, "train_loss": 1.0}]},
        {"seconds": 10**400},
        {"epoch_seconds": []},
        {"best_epoch": 0},
        {"history": [{"epoch": 1}] * 2},
        {"history": [{}] * 2},
    ],
    ids=lambda change: str(change)[:40],
)
def test_a_position_that_cannot_be(saved: Path, tmp_path: Path, change: dict) -> None:
    tensors, metadata = contents(saved)
    metadata["progress"] = json.dumps(json.loads(metadata["progress"]) | change)
    save_file(tensors, tmp_path / "state.safetensors", metadata)
    with file_error(tmp_path / "state.safetensors", at="progress"):
        load_state(tmp_path / "state.safetensors")


@pytest.mark.parametrize("change", [{"scale": "1"}, {"scale": -1.0}, {"scale": [1]}, {"growth_interval": 10**400}])
def test_a_scaler_that_cannot_be(saved: Path, tmp_path: Path, change: dict) -> None:
    tensors, metadata = contents(saved)
    metadata["scaler"] = json.dumps(SCALER | change)
    save_file(tensors, tmp_path / "state.safetensors", metadata)
    with file_error(tmp_path / "state.safetensors", at="scaler"):
        load_state(tmp_path / "state.safetensors")


def test_a_newer_format_raises(saved: Path, tmp_path: Path) -> None:
    tensors, metadata = contents(saved)
    save_file(tensors, tmp_path / "state.safetensors", metadata | {"format_version": "2"})
    with file_error(tmp_path / "state.safetensors", "unsupported", "'2'", 1):
        load_state(tmp_path / "state.safetensors")


def resume(path: Path) -> Spikformer:
    """All that is done with a state, up to the first step."""
    state = load_state(path)
    model = Spikformer(Recipe.from_dict(state.recipe).model)
    optimiser = build_optimiser(model, 0.06)
    state.restore(model, optimiser, WeightAverage(model, 0.9).model)
    return model


@given(data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_never_crashes(saved: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(saved.read_bytes())
    header = 8 + int.from_bytes(content[:8], "little")
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, header))] = data.draw(st.integers(0, 255))
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(bytes(content))
    with suppress(ValueError):  # an error message; any other exception fails the test
        assert isinstance(resume(path), Spikformer)  # or the damage was harmless


@given(text=st.binary(max_size=400))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_raise(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "bytes.safetensors"
    path.write_bytes(text)
    with mistake(FileError, path=path) as caught:
        load_state(path)
    assert caught.value.reason in ("damaged", "foreign")


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors: tensors.pop("model.head.bias"),
        lambda tensors: tensors.pop("average.head.bias"),
        lambda tensors: tensors.update({"model.extra": torch.zeros(1)}),
        lambda tensors: tensors.update({"model.head.bias": torch.zeros(3)}),
        lambda tensors: tensors.update({"optimiser.exp_avg.head.bias": torch.zeros(3)}),
        lambda tensors: tensors.update({"optimiser.step.head.bias": torch.zeros(3)}),
        lambda tensors: tensors.update({"model.head.bias": torch.zeros(10, dtype=torch.int32)}),
        lambda tensors: tensors.update({"optimiser.exp_avg.head.bias": torch.zeros(10, dtype=torch.int32)}),
        lambda tensors: tensors.pop("optimiser.exp_avg_sq.head.bias"),
        lambda tensors: tensors.pop("optimiser.step.head.bias"),
    ],
    ids=["weight", "average", "extra", "shape", "moment", "step", "dtype", "moment_dtype", "no_moment", "no_step"],
)
def test_tensors_that_do_not_fit_raise(saved: Path, tmp_path: Path, change) -> None:
    tensors, metadata = contents(saved)
    change(tensors)
    save_file(tensors, tmp_path / "state.safetensors", metadata)
    with file_error(tmp_path / "state.safetensors", "unfit"):
        resume(tmp_path / "state.safetensors")


@pytest.mark.parametrize(
    "overrides", [{"depth": 1}, {"embed_dim": 32}, {"num_classes": 3}, {"neuron": "plif"}], ids=str
)
def test_another_model_raises(saved: Path, overrides: dict) -> None:
    model = sf.create_model("spikformer_tiny_digits", **overrides)
    with file_error(saved, "unfit"):
        load_state(saved).restore(model, build_optimiser(model, 0.0), None)


def test_a_full_disk_is_an_error_and_leaves_the_old_state(saved: Path, tmp_path: Path, full_disk) -> None:
    path = tmp_path / "state.safetensors"
    path.write_bytes(saved.read_bytes())
    model, optimiser, average = trained()
    with full_disk(200_000), mistake(OSError, path, os.strerror(errno.EFBIG)):
        save_state(path, RECIPE.to_dict(), Progress(), model, optimiser, average, None)
    assert os.listdir(tmp_path) == [path.name]
    assert load_state(path).progress == PROGRESS
