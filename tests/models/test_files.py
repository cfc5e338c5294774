"""Weights on disk: what is saved comes back to the bit; everything else raises, with nothing half-done."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tests.mistakes import field_error, mistake
from torch import nn

import spikformer as sf
from spikformer.analysis.specimens import distinct_models, frames_for, shrunk, specimen
from spikformer.errors import UserError
from spikformer.io import TEMP_SUFFIX
from spikformer.models.files import replace_card
from spikformer.preprocessing import Preprocessing


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    sf.save(specimen(shrunk("spikformer_tiny_digits"), torch.float32), path)
    return path


def contents(path: Path) -> tuple[dict, dict]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())


@pytest.mark.parametrize("name", distinct_models())
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_saved_comes_back_to_the_bit(name: str, dtype, tmp_path: Path) -> None:
    model = specimen(shrunk(name, neuron="plif") if "tiny" in name else shrunk(name), dtype)
    sf.save(model, tmp_path / "model.safetensors")
    loaded = sf.load(tmp_path / "model.safetensors")
    assert loaded.config == model.config
    assert not loaded.training
    ours, theirs = model.state_dict(), loaded.state_dict()
    assert ours.keys() == theirs.keys()
    for key, tensor in theirs.items():
        assert tensor.dtype == ours[key].dtype
        assert torch.equal(tensor, ours[key])
        assert tensor.data_ptr() % 64 == 0, "aligned as PyTorch's own memory, so that sums round alike"
    assert torch.isfinite(loaded(frames_for(model.config, batch_size=2, dtype=dtype))).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_loaded_as_float32(dtype: torch.dtype, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    model = specimen(shrunk("spikformer_tiny_digits")).to(dtype)
    sf.save(model, path)
    assert load_file(path)["head.weight"].dtype == dtype
    loaded, as_stored = sf.load(path), sf.load(path, dtype=dtype)
    for key, tensor in model.state_dict().items():
        assert torch.equal(tensor, as_stored.state_dict()[key])
        assert torch.equal(tensor.to(loaded.state_dict()[key].dtype), loaded.state_dict()[key])
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    images = frames_for(model.config, batch_size=2, dtype=torch.float32)
    assert loaded(images).dtype == torch.float32


def test_a_loaded_model_trains_as_before(saved: Path) -> None:
    model = sf.load(saved).train()
    model(torch.randn(4, 1, 6, 8)).sum().backward()
    assert all(p.requires_grad and p.grad is not None for p in model.parameters())


def test_frozen_queries_stay_frozen(tmp_path: Path) -> None:
    sf.save(sf.create_model("spikformer_tiny_digits", attention="random"), tmp_path / "random.safetensors")
    model = sf.load(tmp_path / "random.safetensors")
    assert not model.blocks[0].attention.query.linear.weight.requires_grad
    assert model.blocks[0].attention.value.linear.weight.requires_grad


def test_a_card_travels_with_its_model(tmp_path: Path) -> None:
    model = sf.create_model("spikformer_tiny_digits")
    model.card = replace(model.card, data_set="digits", class_names=("zero", "eins", "二", *"3456789"))
    sf.save(model, tmp_path / "model.safetensors")
    assert sf.load(tmp_path / "model.safetensors").card == model.card
    other = replace(model.card, licence="MIT")
    sf.save(model, tmp_path / "model.safetensors", card=other)
    assert sf.load(tmp_path / "model.safetensors").card == other
    with field_error("class_names", 2, 10):
        sf.save(model, tmp_path / "model.safetensors", card=replace(other, class_names=("a", "b")))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_card_leaves_the_tensors_as_they_are(dtype: torch.dtype, tmp_path: Path, full_disk) -> None:
    path = tmp_path / "model.safetensors"
    model = specimen(shrunk("spikformer_tiny_digits"), torch.float32).to(dtype)
    sf.save(model, path)
    before, (tensors, metadata) = path.read_bytes(), contents(path)
    card = replace(model.card, licence="MIT", confidence=0.9)
    with full_disk(), mistake(OSError):
        replace_card(path, card)
    assert path.read_bytes() == before
    replace_card(path, card)
    assert sf.load(path).card == card
    written, others = contents(path)
    assert others == metadata | {"card": json.dumps(card.to_dict())}
    assert all(torch.equal(written[name], tensor) for name, tensor in tensors.items())
    replace_card(path, model.card)
    assert path.read_bytes() == before
    with field_error("class_names"):
        replace_card(path, replace(card, class_names=("one",)))
    assert path.read_bytes() == before


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # torch.compile's own, at import
def test_a_wrapped_model_is_saved_as_itself(tmp_path: Path) -> None:
    model = sf.create_model("spikformer_tiny_digits")
    sf.save(torch.compile(model), tmp_path / "model.safetensors")
    assert sf.load(tmp_path / "model.safetensors").config == model.config
    with field_error("model", "save", "Linear"):
        sf.save(torch.nn.Linear(2, 2), tmp_path / "linear.safetensors")


def _add(model: nn.Module) -> None:
    model.blocks[0].register_buffer("more", torch.zeros(3))


def _remove(model: nn.Module) -> None:
    model.head.bias = None


def _mix(model: nn.Module) -> None:
    model.head.double()


def _break(model: nn.Module) -> None:
    nn.init.constant_(model.head.weight, float("nan"))


@pytest.mark.parametrize("spoil", [_add, _remove, _mix, _break])
def test_nothing_is_saved_that_could_not_be_loaded(spoil: Callable[[nn.Module], None], tmp_path: Path) -> None:
    model = specimen(shrunk("spikformer_tiny_digits"), torch.float32)
    sf.save(model, path := tmp_path / "model.safetensors")
    before = path.read_bytes()
    spoil(model)
    with pytest.raises(UserError):
        sf.save(model, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("dtype", [torch.int8, torch.complex64, "float64"])
def test_a_model_is_loaded_as_floats(saved: Path, dtype: Any) -> None:
    with field_error("dtype", repr(dtype)):
        sf.load(saved, dtype=dtype)


def test_time_steps_that_are_given_hold_for_frames_of_files_too(tmp_path: Path) -> None:
    model = specimen(shrunk("spikformer_tiny_digits_dvs"), torch.float32)
    form = Preprocessing(kind="events", size=model.config.image_size, channels=2, time_steps=8)
    sf.save(model, tmp_path / "model.safetensors", replace(model.card, preprocessing=form))
    loaded = sf.load(tmp_path / "model.safetensors", time_steps=3)
    assert (loaded.config.time_steps, loaded.card.preprocessing.time_steps) == (3, 3)


def test_loading_draws_no_random_numbers(saved: Path) -> None:
    state = torch.get_rng_state()
    sf.load(saved)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_file_without_a_card_loads(saved: Path, tmp_path: Path) -> None:
    tensors, metadata = contents(saved)
    del metadata["card"]
    save_file(tensors, tmp_path / "bare.safetensors", metadata)
    assert sf.load(tmp_path / "bare.safetensors").card == sf.ModelCard(architecture="spikformer")


def test_what_version_0_1_wrote_is_read_as_a_card(tmp_path: Path) -> None:
    sf.save(sf.create_model("spikformer_tiny_digits"), tmp_path / "new.safetensors")
    tensors, metadata = contents(tmp_path / "new.safetensors")
    del metadata["card"]
    digits = {"name": "digits", "class_names": list("0123456789"), "events": False, "mean": [0.5], "std": [0.25]}
    metadata["about"] = json.dumps({"data": digits, "recipe": {"name": "r", "epochs": 3}})
    save_file(tensors, tmp_path / "old.safetensors", metadata)
    assert sf.load(tmp_path / "old.safetensors").card == sf.ModelCard(
        architecture="spikformer",
        data_set="digits",
        class_names=tuple("0123456789"),
        preprocessing=sf.Preprocessing(kind="image", size=(8, 8), channels=1, mean=(0.5,), std=(0.25,)),
        recipe="r",
        settings={"epochs": 3},
    )


def test_saving_into_no_folder_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    model = sf.create_model("spikformer_tiny_digits")
    with mistake(FileNotFoundError, tmp_path / "missing", "model.safetensors"):
        sf.save(model, tmp_path / "missing" / "model.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    with mistake(IsADirectoryError, tmp_path / "folder.safetensors"):
        sf.save(model, tmp_path / "folder.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.safetensors"]


@pytest.mark.slow
def test_a_kill_while_saving_leaves_the_old_file_whole(saved: Path, tmp_path: Path) -> None:
    """A process that saves over and over is killed at several moments; what is at the path always loads."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(saved.read_bytes())
    code = (
        "import sys, spikformer as sf\n"
        "model = sf.load(sys.argv[1])\n"
        "print('ready', flush=True)\n"
        "while True: sf.save(model, sys.argv[1])"
    )
    for moment in (0.0, 0.013, 0.057):
        process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "ready\n"
        time.sleep(moment)
        process.kill()
        process.wait()
        process.stdout.close()
        assert sf.load(path).config == sf.load(saved).config
    others = [other.name for other in tmp_path.iterdir() if other != path]
    assert all(name.startswith(".") and name.endswith(TEMP_SUFFIX) for name in others), "only temporary files may stay"
