"""Engines on disk: read without torch, equal to what was written, and never trusted."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

import spikformer as sf
from spikformer.engine.files import is_engine_file


@pytest.fixture(scope="module")
def saved(case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, _ = case("spikformer_tiny_digits")
    model.about = {"data": {"name": "digits"}}
    path = tmp_path_factory.mktemp("engines") / "net.engine"
    sf.compile_engine(model).save(path)
    return path


def metadata_of(path: Path) -> dict[str, str]:
    content = path.read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + size])["__metadata__"]


def test_what_is_read_is_what_was_written(case, saved: Path) -> None:
    model, x = case("spikformer_tiny_digits")
    engine = sf.load_engine(saved)
    assert engine.config == model.config
    assert engine.about == {"data": {"name": "digits"}}
    np.testing.assert_array_equal(engine(x), sf.compile_engine(model)(x))
    assert is_engine_file(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["net.engine"]


_WITHOUT_TORCH = """
import sys, time
begin = time.perf_counter()
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "lightning_fabric", "kornia"):
            raise ImportError(f"{name} was asked for")
sys.meta_path.insert(0, Nothing())
import numpy as np
import spikformer as sf
engine = sf.load_engine(sys.argv[1])
height, width = engine.config.image_size
x = np.random.default_rng(0).standard_normal((2, engine.config.in_channels, height, width), dtype=np.float32)
print(engine(x).argmax(1).tolist(), engine.step(x, engine.initial_state(2))[0].shape)
print(time.perf_counter() - begin)
"""


def test_it_runs_where_torch_cannot_be_imported_and_starts_at_once(saved: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_TORCH, saved], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    answers, seconds = done.stdout.splitlines()
    config = sf.load_engine(saved).config
    x = np.random.default_rng(0).standard_normal((2, config.in_channels, *config.image_size), dtype=np.float32)
    assert answers == f"{sf.load_engine(saved)(x).argmax(1).tolist()} (2, 10)"
    assert float(seconds) < 5  # a fraction of a second on a quiet machine; torch alone takes longer to load


def change(path: Path, target: Path, tensors: dict | None = None, metadata: dict | None = None) -> Path:
    save_file(load_file(path) | (tensors or {}), target, metadata_of(path) | (metadata or {}))
    return target


@pytest.mark.parametrize(
    ("tensors", "metadata", "sentence"),
    [
        ({}, {"format": "spikformer"}, "holds no engine; `spikformer compile` makes one"),
        ({}, {"format_version": "2"}, "has engine format '2', this release reads up to 1; update"),
        ({}, {"format_version": "x"}, "has engine format 'x'"),
        ({}, {"config": "[" * 100_000}, "is damaged: it holds no readable config"),
        ({}, {"config": "{}"}, "is damaged: .*every field"),
        ({}, {"about": "7"}, "is damaged: it holds no readable about"),
        ({"stem.position.bias": np.zeros(3, np.float32)}, {}, r"stem.position.bias should be float32 \[\d+\]"),
        ({"head.bias": np.zeros(10)}, {}, r"head.bias should be float32 \[10\], is float64 \[10\]"),
        ({"head.bias": np.full(10, np.nan, np.float32)}, {}, "head.bias holds NaN or infinity"),
        ({"more": np.zeros(1)}, {}, "it holds more, which does not fit its config"),
        ({"stem.position.neuron": np.array([0.5, 1, 0, 0])}, {}, "threshold at or below its rest"),
        ({"stem.position.neuron": np.array([0.5, 1, 1e-300, 0])}, {}, "threshold at or below its rest"),
    ],
)
def test_damaged_and_foreign_files(saved: Path, tmp_path: Path, tensors, metadata, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        sf.load_engine(change(saved, tmp_path / "bad.engine", tensors, metadata))


@pytest.mark.parametrize(
    ("field", "value"),
    [("depth", 10**9), ("num_heads", 3), ("attention", "softmax"), ("neuron", "relu"), ("embed_dim", 2**40)],
)
def test_a_forged_config_is_refused_at_once(saved: Path, tmp_path: Path, field, value) -> None:
    config = json.loads(metadata_of(saved)["config"]) | {field: value}
    with pytest.raises(ValueError, match="is damaged: "):
        sf.load_engine(change(saved, tmp_path / "forged.engine", metadata={"config": json.dumps(config)}))


def test_missing_tensors_missing_files_and_folders(saved: Path, tmp_path: Path) -> None:
    tensors = load_file(saved)
    del tensors["head.bias"]
    save_file(tensors, tmp_path / "less.engine", metadata_of(saved))
    with pytest.raises(ValueError, match=r"it lacks head\.bias"):
        sf.load_engine(tmp_path / "less.engine")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        sf.load_engine(tmp_path / "none.engine")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        sf.load_engine(tmp_path)
    assert not is_engine_file(tmp_path / "none.engine")


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_damage_brings_it_down(saved: Path, tmp_path_factory: pytest.TempPathFactory, data) -> None:
    content = bytearray(saved.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    (size,) = struct.unpack("<Q", saved.read_bytes()[:8])
    places = st.integers(0, min(len(content), size + 64) - 1) if content else st.nothing()
    for place in data.draw(st.lists(places, max_size=4)) if content else []:
        content[place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "net.engine"
    path.write_bytes(content)
    try:
        engine, refusal = sf.load_engine(path), None
    except ValueError as error:
        engine, refusal = None, str(error)
    if engine is None:
        assert str(path) in refusal
    else:  # the damage is in a number
        x = np.ones((1, engine.config.in_channels, *(engine.config.image_size or (64, 64))), np.float32)
        assert engine(x).shape == (1, engine.config.num_classes)
