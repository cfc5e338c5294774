"""engine.wasm in Node: the scalar engine's bits, error codes for bad files, and the bytes that `make wasm` builds."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.native.cases import BAD_FILE, NAMES, NO_MEMORY, OK, REPOSITORY, assert_answers, write_case
from tests.native.damaged import WRONG

WASM = REPOSITORY / "src/spikformer/page/engine.wasm"
NODE = ["node", str(Path(__file__).with_name("run_engine.mjs")), str(WASM)]

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
needs_zig = pytest.mark.skipif(
    importlib.util.find_spec("ziglang") is None, reason="the package ziglang is not installed; `make wasm` installs it"
)


@needs_node
@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_scalar_engine_s(name: str, tmp_path: Path) -> None:
    modes = ("auto", "events", "dense") if name == "every_op" else ("events",)
    assert_answers(write_case(name, tmp_path), NODE, modes)


@needs_node
def test_bad_files_are_codes_and_the_instance_goes_on(saved: Path, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in WRONG]
    for path in paths:
        path.write_bytes(WRONG[path.name](saved.read_bytes()))
    run = subprocess.run([*NODE, *paths, saved], capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    given = [int(line.split(" ")[0]) for line in run.stdout.splitlines()]
    assert given == [BAD_FILE] * len(WRONG) + [OK]


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
