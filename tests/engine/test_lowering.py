"""From weights to programs: without torch, the same bits as from the model, and never trusted."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from tests.engine.test_files import metadata_of
from tests.mistakes import field_error, file_error

import spikformer as sf
from spikformer.config import ModelConfig, NetworkConfig
from spikformer.engine.engine import Engine
from spikformer.engine.lowering import Arrays, lower, register_lowering
from spikformer.engine.ops import NeuronConstants
from spikformer.engine.program import Builder, Program

pytestmark = pytest.mark.core

_WITHOUT_TORCH = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "lightning_fabric", "kornia"):
            raise ImportError(f"{name} was asked for")
sys.meta_path.insert(0, Nothing())
import spikformer as sf
sf.compile_engine(sys.argv[1]).save(sys.argv[2])
assert "torch" not in sys.modules
"""


def saved(model: sf.Spikformer, path: Path) -> bytes:
    sf.compile_engine(model).save(path)
    return path.read_bytes()


def test_a_weights_file_becomes_an_engine_where_torch_cannot_be_imported(case, tmp_path: Path) -> None:
    model, _ = case("spikformer_tiny_digits")
    weights, ours = tmp_path / "net.safetensors", tmp_path / "net.engine"
    sf.save(model, weights)
    command = [sys.executable, "-c", _WITHOUT_TORCH, weights, ours]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert ours.read_bytes() == saved(model, tmp_path / "of_model.engine")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    "overrides", [{"neuron": "plif", "tau": 1.6}, {"attention": "none"}, {"learnable_scale": True, "qkv_bias": False}]
)
def test_a_file_gives_the_bits_of_its_model(case, tmp_path: Path, dtype: torch.dtype, overrides: dict) -> None:
    model, _ = case("spikformer_tiny_digits", **overrides)
    weights = tmp_path / "net.safetensors"
    sf.save(model.to(dtype), weights)
    sf.compile_engine(os.fspath(weights)).save(tmp_path / "net.engine")
    model.float()  # the session's model: other tests use it
    assert (tmp_path / "net.engine").read_bytes() == saved(sf.load(weights), tmp_path / "of_model.engine")


def without(name: str) -> Callable[[dict], object]:
    return lambda arrays: arrays.pop(name)


def with_array(name: str, array: np.ndarray) -> Callable[[dict], object]:
    return lambda arrays: arrays.update({name: array})


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (without("head.bias"), "head.bias"),
        (without("blocks.0.mlp.hidden.norm.running_var"), "blocks.0.mlp.hidden.norm.running_var"),
        (with_array("more", np.zeros(1, np.float32)), "more"),
        (with_array("stem.position.norm.bias", np.zeros(1, np.float32)), "stem.position.norm.bias"),
        (
            with_array("blocks.0.mlp.output.linear.weight", np.zeros((64, 3), np.float32)),
            "blocks.0.mlp.output.linear.weight",
        ),
        (with_array("head.weight", np.full((10, 64), np.nan, np.float32)), "weights"),
        (with_array("stem.position.norm.running_var", np.full(64, -1, np.float32)), "weights"),
    ],
)
def test_weights_that_do_not_fit_their_config(case, tmp_path: Path, change, named: str) -> None:
    model, _ = case("spikformer_tiny_digits")
    weights, bad = tmp_path / "net.safetensors", tmp_path / "bad.safetensors"
    sf.save(model, weights)
    arrays = load_file(weights)
    change(arrays)
    save_file(arrays, bad, metadata_of(weights))
    with file_error(bad, "unfit", at=named):
        sf.compile_engine(bad)


def test_files_without_a_spiking_network(case, tmp_path: Path) -> None:
    ann = tmp_path / "ann.safetensors"
    sf.save(sf.create_model("spikformer_tiny_digits", neuron="relu"), ann)
    with file_error(ann, "unfit", "'relu'", at="neuron"):
        sf.compile_engine(ann)
    engine = tmp_path / "net.engine"
    saved(case("spikformer_tiny_digits")[0], engine)
    with file_error(engine, "foreign"):
        sf.compile_engine(engine)
    with pytest.raises(FileNotFoundError):
        sf.compile_engine(tmp_path / "none.safetensors")


class PixelConfig(ModelConfig):
    """Of a network of someone else's."""


@register_lowering("test_pixels", PixelConfig)
def lower_pixels(config: PixelConfig, arrays: Arrays) -> Program:
    """Pixels fire, and the mean of their spikes is read out."""
    build = Builder()
    weights = arrays.take("encode", 4, config.in_channels).astype(np.float32)[:, None, None]
    spikes = build.fire(
        "neurons", build.convolve("encode", 0, weights, np.zeros(4, np.float32)), NeuronConstants(1, 0, 1, 0)
    )
    head = np.eye(4, dtype=np.float32)
    build.read_out("head", build.add("sum", spikes, spikes), head, np.zeros(4, np.float32))
    return Program(tuple(build.ops), config.in_channels, config.time_steps, image_size=None)


def test_an_architecture_registers_its_lowering() -> None:
    config = PixelConfig(in_channels=1, time_steps=2)
    arrays = {"encode": np.array([[0.0], [0.5], [1.0], [2.0]])}
    engine = Engine(lower(config, Arrays(arrays)))
    np.testing.assert_array_equal(engine(np.ones((1, 1, 3, 5), np.float32)), [[0, 1, 2, 2]])  # at 0, 1, 2, 2 of 2 steps
    with field_error("more"):
        lower(config, Arrays(arrays | {"more": np.zeros(1)}))
    with field_error("config", "NetworkConfig"):
        lower(NetworkConfig(), Arrays(arrays))
