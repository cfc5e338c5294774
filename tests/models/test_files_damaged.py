"""Weights files that are missing, cut short, damaged or not ours."""

import json
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file
from tests.mistakes import file_error, mistake

import spikformer as sf
from spikformer.analysis.specimens import shrunk, specimen


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    sf.save(specimen(shrunk("spikformer_tiny_digits"), torch.float32), path)
    return path


def contents(path: Path) -> tuple[dict, dict]:
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata())


def test_a_missing_file(tmp_path: Path) -> None:
    with mistake(FileNotFoundError, tmp_path / "nowhere.safetensors"):
        sf.load(tmp_path / "nowhere.safetensors")
    with mistake(IsADirectoryError, tmp_path):
        sf.load(tmp_path)


@pytest.mark.parametrize("keep", [0, 4, 100, 5000, -1])
def test_a_truncated_file(saved: Path, tmp_path: Path, keep: int) -> None:
    path = tmp_path / "short.safetensors"
    path.write_bytes(saved.read_bytes()[:keep])
    with file_error(path):
        sf.load(path)


@given(position=st.integers(0, 3000), value=st.integers(0, 255))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_header_never_crashes(saved: Path, tmp_path: Path, position: int, value: int) -> None:
    data = bytearray(saved.read_bytes())
    data[position] = value
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(bytes(data))
    with suppress(ValueError):  # an error message; any other exception fails the test
        assert isinstance(sf.load(path), sf.Spikformer)  # or the damage was harmless


def test_another_programs_safetensors(tmp_path: Path) -> None:
    save_file({"weight": torch.randn(3)}, tmp_path / "other.safetensors")
    with file_error(tmp_path / "other.safetensors", "foreign"):
        sf.load(tmp_path / "other.safetensors")


def change_config(**fields):
    def change(tensors: dict, metadata: dict) -> None:
        metadata["config"] = json.dumps(json.loads(metadata["config"]) | fields)

    return change


@pytest.mark.parametrize(
    ("change", "reason", "at"),
    [
        (lambda t, m: t.pop("head.bias"), "unfit", "head.bias"),
        (lambda t, m: [t.pop(k) for k in list(t) if "blocks.1." in k], "unfit", "blocks.1.attention.key.linear.bias"),
        (lambda t, m: t.update(extra=torch.zeros(1)), "unfit", "extra"),
        (lambda t, m: t.update({"head.bias": torch.zeros(3)}), "unfit", "head.bias"),
        (lambda t, m: m.update(format_version="2"), "unsupported", None),
        (lambda t, m: m.update(format_version="new"), "unsupported", None),
        (lambda t, m: m.pop("config"), "damaged", "config"),
        (lambda t, m: m.update(config="{"), "damaged", "config"),
        (lambda t, m: m.update(config="[]"), "damaged", "config"),
        (lambda t, m: m.update(config="[" * 100_000), "damaged", "config"),
        (lambda t, m: m.update(card="7"), "damaged", "card"),
        (lambda t, m: m.update(config=json.dumps({"depth": 2})), "unsupported", "image_size"),
        (lambda t, m: t.update({"head.bias": torch.zeros(10).int()}), "damaged", "head.bias"),
        (lambda t, m: t.update({"head.bias": torch.zeros(10).double()}), "damaged", "head.bias"),
        (lambda t, m: t.update({k: x.to(torch.int8) for k, x in t.items()}), "damaged", "stem.stages.0.conv.weight"),
        (lambda t, m: t["head.bias"].fill_(float("nan")), "damaged", "head.bias"),
        (lambda t, m: t["stem.stages.0.norm.running_var"].neg_(), "damaged", "stem.stages.0.norm.running_var"),
        (change_config(flux=1), "unsupported", "flux"),
        (change_config(depth=-2), "unsupported", "depth"),
        (change_config(depth=10**6), "unfit", None),
        (change_config(embed_dim=128), "unfit", "stem.stages.0.conv.weight"),
        (change_config(time_steps=100_000), "unsupported", "time_steps"),
        (change_config(image_size=None, time_steps=10_000), "unsupported", "time_steps"),
        (change_config(v_threshold=10**400), "unsupported", "v_threshold"),
        (change_config(depth=10**400), "unsupported", "depth"),
        (change_config(pool_stages=[True] * 100_000), "unsupported", "pool_stages"),
        (lambda t, m: m.update(config='{"tau": 1' + "0" * 400_000 + "}"), "damaged", "config"),
        (lambda t, m: m.update(config='{"tau": 1, "tau": 2}'), "damaged", "config"),
        (lambda t, m: t.update(extra=torch.zeros(1, dtype=torch.uint16)), "unsupported", "extra"),
    ],
)
def test_a_file_that_does_not_fit_itself(saved: Path, tmp_path: Path, change, reason: str, at: str | None) -> None:
    tensors, metadata = contents(saved)
    change(tensors, metadata)
    save_file(tensors, tmp_path / "changed.safetensors", metadata)
    with file_error(tmp_path / "changed.safetensors", reason, at=at) as error:
        sf.load(tmp_path / "changed.safetensors")
    assert len(str(error.value)) < 500 + len(str(tmp_path))
