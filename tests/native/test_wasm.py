"""engine.wasm in Node: the scalar engine's bits, error codes for bad files, and the bytes that `make wasm` builds."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.native.cases import (
    BAD_FILE,
    NAMES,
    NO_MEMORY,
    OK,
    PROBED,
    RANDOM,
    REPOSITORY,
    assert_answers,
    assert_probes,
    write_case,
)
from tests.native.damaged import WRONG, drawn

WASM = REPOSITORY / "src/spikformer/page/engine.wasm"
PROBE = ["node", str(Path(__file__).with_name("probe_engine.mjs")), str(WASM)]
NODE = ["node", str(Path(__file__).with_name("run_engine.mjs")), str(WASM)]

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
needs_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not installed; `make wasm` installs it"
)


@needs_node
@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.slow) for name in RANDOM)])
def test_answers_are_the_scalar_engine_s(name: str, tmp_path: Path) -> None:
    modes = ("auto", "events", "dense") if name == "every_op" or name in RANDOM else ("events",)
    assert_answers(write_case(name, tmp_path), NODE, modes)


@needs_node
@pytest.mark.parametrize("name", PROBED)
def test_taps_interventions_and_reports_are_the_scalar_engine_s(name: str, tmp_path: Path) -> None:
    """Through engine.js, with answers, those of each step and of a stream."""
    mode = "auto" if name == "every_op" else "events"
    assert_probes(write_case(name, tmp_path), PROBE, mode, answers=True)


@needs_node
def test_mistakes_in_javascript(saved: Path) -> None:
    """Codes, no leak, no use after freeing; results that outlive the growth of memory."""
    command = ["node", Path(__file__).with_name("misuse.mjs"), WASM, saved]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr


def statuses(paths: list[Path]) -> list[int]:
    """That one instance loads and runs them with, one after another."""
    command = ["node", Path(__file__).with_name("load_engine.mjs"), WASM, *paths]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    return [int(line) for line in run.stdout.splitlines()]


@needs_node
def test_bad_files_are_codes_and_the_instance_goes_on(saved: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in WRONG]
    for path in paths:
        path.write_bytes(WRONG[path.name](saved.read_bytes()))
    assert statuses([*paths, saved]) == [BAD_FILE] * len(WRONG) + [OK]


@needs_node
def test_random_changes_are_codes_and_the_instance_goes_on(saved: Path, tmp_path: Path) -> None:
    files = drawn(saved.read_bytes(), 150)
    paths = [tmp_path / str(number) for number in range(len(files))]
    for path, content in zip(paths, files, strict=True):
        path.write_bytes(content)
    *given, sound = statuses([*paths, saved])
    assert set(given) == {OK, BAD_FILE}
    assert sound == OK


@pytest.mark.slow
@needs_node
def test_full_memory_is_a_code_and_the_instance_goes_on(saved: Path) -> None:
    """States are made until one fails; without them there is memory again."""
    run = subprocess.run([*NODE, "--fill", saved], capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    failed, afterwards, size = map(int, run.stdout.split())
    assert (failed, afterwards) == (NO_MEMORY, OK)
    assert 0.9 * 2**30 < size <= 2**30


def test_it_is_small() -> None:
    assert WASM.stat().st_size < 400_000


@needs_node
@needs_zig
@pytest.mark.slow
def test_every_kernel_has_the_bits_of_the_scalar_one() -> None:
    """With sums that doubles round to a middle between two floats, and weights whose products overflow."""
    subprocess.run(["make", "-s", "-o", ".venv/installed", "wasm-kernels"], cwd=REPOSITORY, check=True)


@needs_zig
@pytest.mark.slow
def test_make_builds_the_same_bytes_in_another_folder(tmp_path: Path) -> None:
    """From a copy of the sources; `zig` has its own cache for the C++ library, which takes minutes the first time."""
    for part in ("Makefile", "constraints.txt", "pyproject.toml", "CMakeLists.txt", "kernels"):
        subprocess.run(["cp", "-r", REPOSITORY / part, tmp_path], check=True)
    (tmp_path / ".venv").symlink_to(REPOSITORY / ".venv")
    target = "src/spikformer/page/engine.wasm"
    subprocess.run(["make", "-s", "-o", ".venv/installed", target], cwd=tmp_path, check=True)
    assert (tmp_path / target).read_bytes() == WASM.read_bytes()
