"""The C library under sanitizers: the scalar engine's bits, the package's preprocessing, files that are not trusted."""

import json
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.engine.drawn import program_of_every_op
from tests.native.cases import NAMES, REPOSITORY, assert_answers, make, write_case

from spikformer.card import ModelCard
from spikformer.engine.engine import Engine
from spikformer.engine.file import read_compiled, write_compiled
from spikformer.engine.program import Compiled, Program
from spikformer.preprocessing import Preprocessing

OK, BAD_ARGUMENT, BAD_FILE = 0, 1, 3
_C = REPOSITORY / "kernels/bindings/c"


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_scalar_engine_s(name: str, tmp_path: Path) -> None:
    modes = ("auto", "events", "dense") if name == "every_op" else ("events",)
    assert_answers(write_case(name, tmp_path), [make("build/run/sanitized/run_engine")], modes)


def statuses(paths: list[Path]) -> list[int]:
    run = subprocess.run(
        [make("build/run/sanitized/load_engine"), *paths], capture_output=True, encoding="utf-8", errors="replace"
    )
    assert run.returncode == 0, run.stderr
    return [int(line.split(" ")[0]) for line in run.stdout.splitlines()]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "net.engine"
    seen = Preprocessing(kind="image", size=(8, 16), channels=2, mean=(0.5,), std=(0.25,))
    card = ModelCard(architecture="program", class_names=("Zoë", "<b>", "\U0001f642"), preprocessing=seen)
    write_compiled(Compiled(program_of_every_op(), card=card), path)
    return path


def changed(content: bytes, change: Callable[[dict[str, Any]], object], *, key: str | None = None) -> bytes:
    """The file with another header; with a key, that part of its metadata, which is JSON itself."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    if key is None:
        change(header)
    else:
        value = json.loads(header["__metadata__"][key])
        change(value)
        header["__metadata__"][key] = json.dumps(value)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def is_readable(path: Path) -> bool:
    try:
        read_compiled(path)
    except ValueError:
        return False
    return True


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda file: b"",
    "short": lambda file: file[:100],
    "cut": lambda file: file[:-1],
    "longer": lambda file: file + b"\0",
    "long header": lambda file: b"\xff" * 8 + file[8:],
    "deep": lambda file: struct.pack("<Q", 100_000) + b"[" * 100_000,
    "twice": lambda file: struct.pack("<Q", 14) + b'{"a":1,"a":1} ',
    "bytes": lambda file: struct.pack("<Q", 6) + b'{"\xff":1',
    "format": lambda file: file.replace(b"spikformer-engine", b"spikformer-engima"),
    "version": lambda file: file.replace(b'"format_version":"3"', b'"format_version":"4"'),
    "dtype": lambda file: file.replace(b'"F32"', b'"I32"'),
    "overlap": lambda file: changed(file, lambda header: header["head.bias"].update(data_offsets=[0, 12])),
    "huge": lambda file: changed(file, lambda header: header["head.bias"].update(shape=[2**40, 2**40])),
    "metadata": lambda file: changed(file, lambda header: header["__metadata__"].update(card=1)),
    "no ops": lambda file: changed(file, lambda program: program.update(ops=[]), key="program"),
    "no readout": lambda file: changed(file, lambda program: program["ops"].pop(), key="program"),
    "unknown op": lambda file: changed(file, lambda program: program["ops"][0].update(op="run"), key="program"),
    "unknown field": lambda file: changed(file, lambda program: program["ops"][0].update(more=1), key="program"),
    "forward": lambda file: changed(file, lambda program: program["ops"][0].update(inputs=[1]), key="program"),
    "arity": lambda file: changed(file, lambda program: program["ops"][0].update(inputs=[0, 0]), key="program"),
    "same name": lambda file: changed(file, lambda program: program["ops"][1].update(name="fire"), key="program"),
    "stride": lambda file: changed(file, lambda program: program["ops"][0].update(stride=3), key="program"),
    "float": lambda file: changed(file, lambda program: program["ops"][0].update(stride=1.0), key="program"),
    "boolean": lambda file: changed(file, lambda program: program["ops"][0].update(stride=True), key="program"),
    "threshold": lambda file: changed(
        file, lambda program: program["ops"][2].update(neuron=[1, 1, 0, 0]), key="program"
    ),
    "constant": lambda file: changed(
        file, lambda program: program["ops"][2].update(neuron=[1e9, 1, 1, 0]), key="program"
    ),
    "steps": lambda file: changed(file, lambda program: program.update(time_steps=10**7), key="program"),
    "no steps": lambda file: changed(file, lambda program: program.update(time_steps=0), key="program"),
    "size": lambda file: changed(file, lambda program: program.update(image_size=[8, 10**6]), key="program"),
    "odd size": lambda file: changed(file, lambda program: program.update(image_size=[7, 16]), key="program"),
    "classes": lambda file: changed(file, lambda card: card.update(class_names=["a"]), key="card"),
    "no name": lambda file: changed(file, lambda card: card.update(class_names=["a", "", "c"]), key="card"),
    "input": lambda file: changed(file, lambda card: card["preprocessing"].update(channels=3), key="card"),
    "ratio": lambda file: changed(file, lambda card: card["preprocessing"].update(crop_ratio=0.01), key="card"),
    "deviation": lambda file: changed(file, lambda card: card["preprocessing"].update(std=[0]), key="card"),
    "NaN": lambda file: file[:-4] + struct.pack("<f", float("nan")),
    "large": lambda file: file[:-4] + struct.pack("<f", 1e30),
}


def test_files_that_python_does_not_read(saved: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in WRONG]
    for path in paths:
        path.write_bytes(WRONG[path.name](saved.read_bytes()))
    assert [path.name for path in paths if is_readable(path)] == []
    assert dict(zip(WRONG, statuses(paths), strict=True)) == dict.fromkeys(WRONG, BAD_FILE)


def test_files_with_a_byte_changed(saved: Path, tmp_path: Path) -> None:
    """Whatever Python reads, C does; and the other way round, but for what C leaves unread."""
    content, rng = saved.read_bytes(), np.random.default_rng(0)
    paths, readable = [], []
    for number in range(150):
        place = int(rng.integers(0, 8 + struct.unpack("<Q", content[:8])[0]))
        path = tmp_path / str(number)
        path.write_bytes(content[:place] + bytes([rng.integers(0, 256)]) + content[place + 1 :])
        paths.append(path)
        readable.append(is_readable(path))
    given = statuses(paths)
    assert all(status == OK for status, reads in zip(given, readable, strict=True) if reads)
    assert set(given) == {OK, BAD_FILE}


def prepared(path: Path, picture: np.ndarray) -> np.ndarray | int:
    """What C makes of a picture [C, H, W], or its status."""
    pixels, output = path.with_suffix(".pixels"), path.with_suffix(".output")
    pixels.write_bytes(np.ascontiguousarray(picture.transpose(1, 2, 0)).tobytes())
    channels, height, width = map(str, picture.shape)
    command = [make("build/run/sanitized/prepare_picture"), path, pixels, output, height, width, channels]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0 or run.returncode > 10, run.stderr
    return np.frombuffer(output.read_bytes(), np.float32) if run.returncode == 0 else run.returncode - 10


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_pictures_become_the_inputs_that_python_makes(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sides = st.integers(1, 70)
    channels, depth = data.draw(st.sampled_from([(1, 1), (3, 3), (1, 3), (3, 1), (2, 2)]))
    mean, std = data.draw(st.sampled_from([(None, None), ((0.4734,), (0.2516,))]))
    seen = Preprocessing(
        kind="image",
        size=(8, 16),
        channels=channels,
        crop_ratio=data.draw(st.sampled_from([1.0, 0.875, 0.5, 1 / 3])),
        resampling=data.draw(st.sampled_from(["bicubic", "bilinear", "nearest"])),
        mean=mean,
        std=std,
    )
    picture = np.random.default_rng(data.draw(st.integers(0, 99))).integers(
        0, 256, (depth, data.draw(st.one_of(st.just(8), sides)), data.draw(st.one_of(st.just(16), sides))), np.uint8
    )
    path = tmp_path_factory.mktemp("pictures") / "net.engine"
    write_compiled(Compiled(_program(channels), card=ModelCard(architecture="program", preprocessing=seen)), path)
    expected = seen.to_inputs(seen.to_sample(picture)[None])
    assert prepared(path, picture).tobytes() == expected.tobytes()


def test_a_ribbon_and_a_picture_of_other_channels(tmp_path: Path) -> None:
    seen = Preprocessing(kind="image", size=(8, 16), channels=3)
    path = tmp_path / "net.engine"
    write_compiled(Compiled(_program(3), card=ModelCard(architecture="program", preprocessing=seen)), path)
    for shape in ((3, 2, 3000), (3, 3001, 1)):
        picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
        assert prepared(path, picture).tobytes() == seen.to_inputs(seen.to_sample(picture)[None]).tobytes()
    assert prepared(path, np.zeros((4, 8, 16), np.uint8)) == BAD_ARGUMENT


def _program(channels: int) -> Program:
    program = program_of_every_op()
    first = replace(program.ops[0], weights=np.resize(program.ops[0].weights, (8, 7, 7, channels)))
    return replace(program, ops=(first, *program.ops[1:]), in_channels=channels)


@pytest.mark.slow
def test_an_installed_library_with_its_examples(tmp_path: Path) -> None:
    """cmake, pkg-config, the example in C and the one in Python: both name the class that the package names."""
    build, prefix = tmp_path / "build", tmp_path / "prefix"
    shared = ["-DBUILD_SHARED_LIBS=ON", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    for command in (
        ["cmake", "-S", REPOSITORY, "-B", build, *shared],
        ["cmake", "--build", build, "--parallel", "2"],
        ["cmake", "--install", build],
    ):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "spikformer"],
        env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    example, strict = tmp_path / "example", ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, _C / "example.c", *flags, f"-Wl,-rpath,{prefix}/lib", "-o", example], check=True)
    seen = Preprocessing(kind="image", size=(8, 16), channels=3, mean=(0.5,), std=(0.25,))
    card = ModelCard(architecture="program", class_names=("zero", "one", "two"), preprocessing=seen)
    path, picture = tmp_path / "net.engine", tmp_path / "picture.ppm"
    write_compiled(Compiled(_program(3), card=card, density_threshold=0.5), path)
    pixels = np.random.default_rng(0).integers(0, 256, (21, 30, 3), np.uint8)
    Image.fromarray(pixels).save(picture)
    (answer,) = Engine(read_compiled(path), 1).predict(pixels.transpose(2, 0, 1))
    library = prefix / "lib/libspikformer.so"
    for command in ([example, path, picture], [sys.executable, _C / "example.py", library, path, picture]):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (run.returncode, run.stdout.strip()) == (0, answer.class_name), run.stderr
