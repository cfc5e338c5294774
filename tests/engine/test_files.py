"""Engines on disk: read without torch, equal to what was written, and never trusted."""

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tests.engine.drawn import program_of_every_op
from tests.mistakes import file_error, mistake

import spikformer as sf
from spikformer.engine.file import is_engine_file, read_compiled, write_compiled
from spikformer.engine.program import Compiled

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def saved(case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, _ = case("spikformer_tiny_digits")
    model.card = replace(model.card, data_set="digits")
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
    assert engine.card == replace(model.card, data_set="digits")
    np.testing.assert_array_equal(engine(x), sf.compile_engine(model)(x))
    assert is_engine_file(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["net.engine"]


_WITHOUT_TORCH = """
import sys, time
begin = time.process_time()
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
print(time.process_time() - begin)
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
    assert float(seconds) < 5  # of the processor, however busy it is; torch alone takes longer to load


def change(path: Path, target: Path, tensors: dict | None = None, metadata: dict | None = None) -> Path:
    save_file(load_file(path) | (tensors or {}), target, metadata_of(path) | (metadata or {}))
    return target


@pytest.mark.parametrize(
    ("tensors", "metadata", "reason", "at"),
    [
        ({}, {"format": "spikformer"}, "foreign", None),
        ({}, {"format_version": "4"}, "unsupported", None),
        ({}, {"format_version": "1"}, "unsupported", None),
        ({}, {"format_version": "x"}, "unsupported", None),
        ({}, {"config": "[" * 100_000}, "damaged", "config"),
        ({}, {"config": "{}"}, "damaged", "image_size"),
        ({}, {"card": "7"}, "damaged", "card"),
        ({}, {"density_threshold": "1"}, "damaged", "density_threshold"),
        ({}, {"density_threshold": "NaN"}, "damaged", "density_threshold"),
        ({}, {"density_threshold": "-5.0"}, "damaged", "density_threshold"),
        ({}, {"program": "{}"}, "damaged", None),
        ({"stem.position.bias": np.zeros(3, np.float32)}, {}, "damaged", "stem.position"),
        ({"head.bias": np.zeros(10)}, {}, "damaged", "head.bias"),
        ({"head.bias": np.full(10, np.nan, np.float32)}, {}, "damaged", "head.bias"),
        ({"more": np.zeros(1)}, {}, "damaged", "more"),
        ({"head.bias": np.full(10, -3e38, np.float32)}, {}, "damaged", "head.bias"),
        ({"head.weights": np.full((10, 64), 1e24, np.float32)}, {}, "damaged", "head.weights"),
    ],
)
def test_damaged_and_foreign_files(saved: Path, tmp_path: Path, tensors, metadata, reason, at) -> None:
    with file_error(tmp_path / "bad.engine", reason, at=at):
        sf.load_engine(change(saved, tmp_path / "bad.engine", tensors, metadata))


def forge(saved: Path, target: Path, change: Callable[[dict], object]) -> Path:
    """The same file with another description of its program."""
    program = json.loads(metadata_of(saved)["program"])
    change(program)
    save_file(load_file(saved), target, metadata_of(saved) | {"program": json.dumps(program)})
    return target


def test_time_steps_are_bounded_by_the_size_of_the_ops(saved: Path, tmp_path: Path) -> None:
    bomb = forge(saved, tmp_path / "bomb.engine", lambda program: program.update(time_steps=10**6))
    change(bomb, bomb, metadata={"config": "null"})
    with file_error(bomb, at="time_steps"):
        sf.load_engine(bomb)


def op_of(program: dict, name: str) -> dict:
    return next(op for op in program["ops"] if op["name"] == name)


@pytest.mark.parametrize(
    "constants", [[0.5, 1, 0, 0], [0.5, 1, 1e-300, 0], [1e30, 1, 1, 0], [0.5, 1, 1e300, 0], [0.5, 1], 7]
)
def test_neurons_that_cannot_be(saved: Path, tmp_path: Path, constants: object) -> None:
    forged = forge(saved, tmp_path / "f.engine", lambda p: op_of(p, "stem.position.neuron").update(neuron=constants))
    with file_error(tmp_path / "f.engine"):
        sf.load_engine(forged)


@pytest.mark.parametrize(
    "change",
    [
        lambda program: program.pop("ops"),
        lambda program: program.update(ops=7),
        lambda program: program["ops"].pop(),
        lambda program: program["ops"].pop(0),
        lambda program: program["ops"].append(program["ops"][0]),
        lambda program: program["ops"][0].update(op="call"),
        lambda program: program["ops"][0].update(inputs=[5]),
        lambda program: program["ops"][0].update(inputs=["0"]),
        lambda program: program["ops"][0].update(name=3),
        lambda program: program["ops"][0].update(stride=3),
        lambda program: program["ops"][0].update(stride=True),
        lambda program: program["ops"][0].update(dilation=2),
        lambda program: op_of(program, "blocks.0.attention.mixing").update(num_heads=3),
        lambda program: op_of(program, "blocks.0.attention.mixing").update(scale=1e300),
        lambda program: op_of(program, "blocks.0.attention.mixing").update(scale="1"),
        lambda program: program.update(time_steps=10**9),
        lambda program: program.update(in_channels=2),
        lambda program: program.update(image_size=[8]),
        lambda program: program.update(image_size=[7, 8]),
    ],
)
def test_programs_that_cannot_be(saved: Path, tmp_path: Path, change: Callable[[dict], object]) -> None:
    with file_error(tmp_path / "f.engine"):
        sf.load_engine(forge(saved, tmp_path / "f.engine", change))


def test_a_file_of_the_version_without_strides_is_read_as_it_was(saved: Path, tmp_path: Path) -> None:
    program = json.loads(metadata_of(saved)["program"])
    for op in program["ops"]:
        if op["op"] in ("convolve", "pool"):
            op.pop("stride", None)
            op.pop("kernel", None)
    older = {"format_version": "2", "program": json.dumps(program)}
    ours, kept = sf.load_engine(change(saved, tmp_path / "older.engine", metadata=older)), sf.load_engine(saved)
    x = np.random.default_rng(0).standard_normal((2, 1, *kept.config.image_size), dtype=np.float32)
    np.testing.assert_array_equal(ours(x), kept(x))


def test_a_program_of_every_op_is_kept(tmp_path: Path) -> None:
    """Their scalars: counts, flags, a scale, a neuron."""
    program = program_of_every_op()
    write_compiled(Compiled(program), tmp_path / "net.engine")
    read = read_compiled(tmp_path / "net.engine").program
    for ours, kept in zip(read.ops, program.ops, strict=True):
        assert type(ours) is type(kept)
        for field in fields(kept):
            np.testing.assert_array_equal(getattr(ours, field.name), getattr(kept, field.name))


def test_the_largest_numbers_that_are_read_give_finite_answers(saved: Path, tmp_path: Path) -> None:
    tensors = {
        name: np.full_like(array, 0.99e24 / array[0].size) if name.endswith(".weights") else array
        for name, array in load_file(saved).items()
    }
    tensors |= {name: np.full_like(array, -0.99e24) for name, array in tensors.items() if name.endswith(".bias")}
    engine = sf.load_engine(change(saved, tmp_path / "large.engine", tensors))
    config = engine.config
    assert np.isfinite(engine(np.ones((1, config.in_channels, *config.image_size), np.float32))).all()


@pytest.mark.parametrize("shape", [(10, 64), (10, 65), (1 << 20, 1 << 12)])
def test_a_tensor_of_another_shape_is_not_read(saved: Path, tmp_path: Path, shape: tuple[int, int]) -> None:
    """A file with holes: the last would take 16 GB."""
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * shape[0] * shape[1]]}
    names = [f"{n}" for n in range(20)]  # as many as the config has layers
    empty = {name: {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for name in names}
    header = json.dumps({"__metadata__": metadata_of(saved), "stem.stages.0.weights": entry} | empty).encode()
    path = tmp_path / "holes.engine"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    os.truncate(path, 8 + len(header) + 4 * shape[0] * shape[1])
    with file_error(path):
        sf.load_engine(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_heads", 3),
        ("num_classes", 7),
        ("in_channels", 3),
        ("embed_dim", 2**40),
        ("time_steps", 8),
        ("time_steps", 10**6),
        ("tau", 10**400),
    ],
)
def test_a_forged_config_is_rejected_at_once(saved: Path, tmp_path: Path, field, value) -> None:
    config = json.loads(metadata_of(saved)["config"]) | {field: value}
    with file_error(tmp_path / "forged.engine", at=field):
        sf.load_engine(change(saved, tmp_path / "forged.engine", metadata={"config": json.dumps(config)}))


def test_missing_tensors_missing_files_and_folders(saved: Path, tmp_path: Path) -> None:
    tensors = load_file(saved)
    del tensors["head.bias"]
    save_file(tensors, tmp_path / "less.engine", metadata_of(saved))
    with file_error(tmp_path / "less.engine", at="head.bias"):
        sf.load_engine(tmp_path / "less.engine")
    with mistake(FileNotFoundError, tmp_path / "none.engine"):
        sf.load_engine(tmp_path / "none.engine")
    with mistake(IsADirectoryError, tmp_path):
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
        engine, message = sf.load_engine(path), None
    except ValueError as error:
        engine, message = None, str(error)
    if engine is None:
        assert str(path) in message
    else:  # the damage is in a number
        x = np.ones((1, engine.config.in_channels, *(engine.config.image_size or (64, 64))), np.float32)
        assert engine(x).shape == (1, engine.config.num_classes)
