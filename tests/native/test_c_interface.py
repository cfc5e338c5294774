"""The C library under sanitizers: the scalar engine's bits, the package's preprocessing, files that are not trusted."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.engine.drawn import BEST, program_of_every_op
from tests.native.cases import (
    BAD_ARGUMENT,
    BAD_FILE,
    NAMES,
    OK,
    PROBED,
    REPOSITORY,
    assert_answers,
    assert_probes,
    make,
    write_case,
)
from tests.native.damaged import WRONG, changed, drawn

from spikformer.card import ModelCard
from spikformer.engine.engine import Engine, Mode
from spikformer.engine.file import read_compiled, write_compiled
from spikformer.engine.program import Compiled, Program
from spikformer.preprocessing import Preprocessing

_C = REPOSITORY / "kernels/bindings/c"

pytestmark = pytest.mark.slow  # the build with sanitizers takes minutes the first time


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_scalar_engine_s(name: str, tmp_path: Path) -> None:
    modes = ("auto", "events", "dense") if name == "every_op" else ("events",)
    assert_answers(write_case(name, tmp_path), [make("build/run/sanitized/run_engine")], modes)


@pytest.mark.parametrize("name", PROBED)
def test_taps_interventions_and_reports_are_the_scalar_engine_s(name: str, tmp_path: Path) -> None:
    mode = "auto" if name == "every_op" else "events"
    assert_probes(write_case(name, tmp_path), [make("build/run/sanitized/probe_engine")], mode, answers=False)


def statuses(paths: list[Path]) -> list[int]:
    run = subprocess.run(
        [make("build/run/sanitized/load_engine"), *paths], capture_output=True, encoding="utf-8", errors="replace"
    )
    assert run.returncode == 0, run.stderr
    return [int(line.split(" ")[0]) for line in run.stdout.splitlines()]


def is_readable(path: Path) -> bool:
    try:
        read_compiled(path)
    except ValueError:
        return False
    return True


def test_files_that_python_does_not_read(saved: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in WRONG]
    for path in paths:
        path.write_bytes(WRONG[path.name](saved.read_bytes()))
    assert [path.name for path in paths if is_readable(path)] == []
    assert dict(zip(WRONG, statuses(paths), strict=True)) == dict.fromkeys(WRONG, BAD_FILE)


def test_random_changes(saved: Path, tmp_path: Path) -> None:
    """Whatever Python reads, C does; and the other way round, but for what C leaves unread."""
    paths, readable = [], []
    for number, content in enumerate(drawn(saved.read_bytes(), 150)):
        path = tmp_path / str(number)
        path.write_bytes(content)
        paths.append(path)
        readable.append(is_readable(path))
    given = statuses(paths)
    assert all(status == OK for status, reads in zip(given, readable, strict=True) if reads)
    assert set(given) == {OK, BAD_FILE}


def test_where_c_is_stricter_than_python(saved: Path, tmp_path: Path) -> None:
    """Half a surrogate pair is no character. Cards of version 0.1, which C leaves unread, are no errors."""
    half, old = tmp_path / "half", tmp_path / "old"
    content = saved.read_bytes()
    half.write_bytes(changed(content, lambda card: card.update(class_names=["\ud800", "b", "c"]), key="card"))

    def make_old(header: dict[str, Any]) -> None:
        data = {"name": "digits", "class_names": ["a", "b", "c"], "events": False, "mean": None, "std": None}
        del header["__metadata__"]["card"]
        header["__metadata__"]["about"] = json.dumps({"data": data})

    old.write_bytes(changed(content, make_old))
    assert is_readable(half)
    assert read_compiled(old).card.class_names == ("a", "b", "c")
    assert statuses([half, old]) == [BAD_FILE, OK]


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


def test_ribbons_either_order_of_passes_and_other_channels(tmp_path: Path) -> None:
    """Pillow filters along columns first where far more rows than columns are lost: of 35 × 17, not of 34 × 17."""
    seen = Preprocessing(kind="image", size=(8, 16), channels=3)
    path = tmp_path / "net.engine"
    write_compiled(Compiled(_program(3), card=ModelCard(architecture="program", preprocessing=seen)), path)
    for shape in ((3, 2, 3000), (3, 3001, 1), (3, 35, 17), (3, 34, 17), (3, 70, 9)):
        picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
        assert prepared(path, picture).tobytes() == seen.to_inputs(seen.to_sample(picture)[None]).tobytes()
    assert prepared(path, np.zeros((4, 8, 16), np.uint8)) == BAD_ARGUMENT


def _program(channels: int) -> Program:
    program = program_of_every_op()
    first = replace(program.ops[0], weights=np.resize(program.ops[0].weights, (8, 7, 7, channels)))
    return replace(program, ops=(first, *program.ops[1:]), in_channels=channels)


@pytest.mark.skipif(
    shutil.which("cmake") is None or shutil.which("pkg-config") is None, reason="cmake or pkg-config is not installed"
)
@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "static"])
def test_an_installed_library_with_its_examples(is_shared: bool, tmp_path: Path) -> None:
    """Its best instruction set has the scalar bits; both examples name the class that the package names."""
    prefix, flags = _installed(is_shared, tmp_path)
    example, strict = tmp_path / "example", ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, _C / "example.c", *flags, "-o", example], check=True)
    subprocess.run(["cc", Path(__file__).with_name("run_engine.c"), *flags, "-o", tmp_path / "run_engine"], check=True)
    probe = tmp_path / "probe_engine"  # of both headers
    subprocess.run(["cc", "-std=c99", Path(__file__).with_name("probe_engine.c"), *flags, "-o", probe], check=True)
    modes: tuple[Mode, ...] = ("events",) if BEST == "amx" else ("events", "dense")  # AMX multiplies integers
    assert_answers(write_case("every_op", tmp_path), [tmp_path / "run_engine"], modes)
    assert_probes(write_case("every_op", tmp_path), [probe], "events", answers=False)
    commands: list[list[str | Path]] = [[example]]
    if is_shared:
        commands.append([sys.executable, _C / "example.py", prefix / "lib/libspikformer.so"])
    _assert_named(commands, tmp_path)


def test_both_examples_under_sanitizers(tmp_path: Path) -> None:
    """Python is built without them, so their runtime is preloaded, and the interpreter's own leaks are ignored."""
    _assert_named([[make("build/run/sanitized/example")]], tmp_path)
    library = make("build/run/sanitized/libspikformer.so")
    loaded = [
        subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    environment = {"LD_PRELOAD": " ".join(loaded), "ASAN_OPTIONS": "detect_leaks=0"}
    _assert_named([[sys.executable, _C / "example.py", library]], tmp_path, **environment)


def _assert_named(commands: list[list[str | Path]], folder: Path, **environment: str) -> None:
    """Each command, given an engine and a picture, prints the class that the package names."""
    seen = Preprocessing(kind="image", size=(8, 16), channels=3, mean=(0.5,), std=(0.25,))
    card = ModelCard(architecture="program", class_names=("zero", "one", "two"), preprocessing=seen)
    path, picture = folder / "net.engine", folder / "picture.ppm"
    write_compiled(Compiled(_program(3), card=card, density_threshold=0.5), path)
    pixels = np.random.default_rng(0).integers(0, 256, (21, 30, 3), np.uint8)
    Image.fromarray(pixels).save(picture)
    (answer,) = Engine(read_compiled(path), 1).predict(pixels.transpose(2, 0, 1))
    for command in commands:
        run = subprocess.run(
            [*command, path, picture], capture_output=True, text=True, check=False, env=os.environ | environment
        )
        assert (run.returncode, run.stdout.strip()) == (0, answer.class_name), run.stderr


def _installed(is_shared: bool, folder: Path) -> tuple[Path, list[str]]:
    """Where CMake installs the library, and the compiler's flags that pkg-config has for it."""
    build, prefix = folder / "build", folder / "prefix"
    options = [f"-DBUILD_SHARED_LIBS={is_shared}", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib"]
    for command in (
        ["cmake", "-S", REPOSITORY, "-B", build, *options],
        ["cmake", "--build", build, "--parallel", "2"],
        ["cmake", "--install", build],
    ):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
    assert (prefix / "lib/libspikformer.so").exists() == is_shared
    assert (prefix / "lib/libspikformer.a").exists() != is_shared
    flags = subprocess.run(
        ["pkg-config", *([] if is_shared else ["--static"]), "--cflags", "--libs", "spikformer"],
        env={"PATH": "/usr/bin:/bin", "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return prefix, [*flags, f"-Wl,-rpath,{prefix}/lib"]
