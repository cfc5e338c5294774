"""The page's modules in Node: unit tests, types, event files as Python reads them, and one script out of all."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.data.conftest import Rows, davis240, dvs128, gesture, nmnist, npz
from tests.page.harness import HERE, needs_node

from spikformer.data.events.formats import read_recording
from spikformer.page import bundle as bundling
from spikformer.page.bundle import FOLDER, bundle

TYPESCRIPT = "typescript@5.9.3"
CACHE = HERE.parents[1] / "build/typescript"
MODULES = sorted(path.stem for path in FOLDER.glob("*.js"))
ROWS: Rows = [(10 * index + 5, (7 * index) % 34, (3 * index) % 34, index % 2) for index in range(60)]
WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "dvs128.aedat": dvs128,
    "davis.aedat": davis240,
    "gesture.aedat": gesture,
    "late.aedat": lambda rows: gesture([(t + 2**31 - 200, *rest) for t, *rest in rows]),  # type: ignore[misc]
    "wrapped.aedat": lambda rows: dvs128([(t + 2**32 - 200, *rest) for t, *rest in rows]),  # type: ignore[misc]
    "n.bin": nmnist,
    "overflow.bin": lambda rows: nmnist([*rows[:9], (99, 0, 240, 0), *rows[9:]]),
    "plain.npz": npz,
    "packed.npz": lambda rows: npz(rows, np.savez_compressed),
}


@needs_node
def test_modules_pass_their_unit_tests() -> None:
    command = ["node", "--test", str(HERE / "scripts.test.mjs")]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout
    assert "# fail 0" in run.stdout
    assert "# pass 0" not in run.stdout


@pytest.fixture(scope="session")
def tsc() -> Path:
    """TypeScript's compiler, which only checks; installed once, below build/."""
    compiler = CACHE / "node_modules/typescript/bin/tsc"
    if not compiler.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm, which installs TypeScript, is not installed")
        CACHE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--silent", "--no-save", "--ignore-scripts", "--prefix", str(CACHE), TYPESCRIPT]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip(f"{TYPESCRIPT} cannot be downloaded")
    return compiler


@needs_node
@pytest.mark.slow
def test_types_are_right(tsc: Path) -> None:
    command = ["node", str(tsc), "-p", str(HERE / "tsconfig.json")]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stdout


def read_in_node(paths: list[Path]) -> list[dict]:
    command = ["node", str(HERE / "formats.mjs"), *map(str, paths)]
    run = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@needs_node
def test_event_files_are_read_as_python_reads_them(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in WRITERS]
    for path in paths:
        path.write_bytes(WRITERS[path.name](ROWS))
    for path, found in zip(paths, read_in_node(paths), strict=True):
        wanted = read_recording(path)
        assert found["time"] == wanted.time_us.tolist(), path.name
        assert (found["x"], found["y"]) == (wanted.x.tolist(), wanted.y.tolist())
        assert found["on"] == wanted.on.astype(int).tolist()
        assert (tuple(found["size"]), found["guessed"]) == (wanted.size, wanted.size_is_guessed)


@needs_node
@pytest.mark.parametrize("name", WRITERS)
def test_damaged_files_are_problems_where_python_sees_one(name: str, tmp_path: Path) -> None:
    """Cut off, or with bytes changed, where no checksum tells: as in Python, or a problem; never another error."""
    whole, random = WRITERS[name](ROWS), np.random.default_rng(0)
    paths = []
    for number in range(24):
        content = bytearray(whole[: int(random.integers(1, len(whole)))] if number % 2 else whole)
        for place in random.integers(0, len(content), number // 2):
            content[place] = random.integers(256)
        paths.append(tmp_path / f"{number}_{name}")
        paths[-1].write_bytes(content)
    problems = 0
    for path, found in zip(paths, read_in_node(paths), strict=True):
        try:
            wanted = read_recording(path)
        except ValueError:
            problems += 1
            # Python also compares the checksums of archives, of which browsers know nothing.
            assert "problem" in found or name.endswith(".npz"), path
        else:
            assert found.get("time", wanted.time_us.tolist()) == wanted.time_us.tolist()
    assert problems > 5


def test_the_script_is_one_with_every_module_that_has_code() -> None:
    script = bundle("main")
    for name in MODULES:
        assert script.count(f"const ${name} = ") == (name != "types"), name
    assert "import " not in "".join(line for line in script.splitlines() if line.startswith("import"))
    assert len(script) < 150_000


@needs_node
def test_the_bundled_script_parses(tmp_path: Path) -> None:
    path = tmp_path / "page.mjs"
    path.write_text(bundle("main"), encoding="utf-8")
    run = subprocess.run(["node", "--check", str(path)], capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize(
    "line", ['import "./a.js";', "export default 1;", "export let x = 1;", 'import a from "./a.js";']
)
def test_what_cannot_be_bundled_is_an_error(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.js").write_text(f"{line}\n")
    monkeypatch.setattr(bundling, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"a\.js"):
        bundle("a")


def test_modules_that_import_each_other_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{one}.js").write_text(f'import {{ x }} from "./{other}.js";\n')
    monkeypatch.setattr(bundling, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="a → b → a"):
        bundle("a")
