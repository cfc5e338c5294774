"""The architecture: imports go one way, heavy ones only when needed."""

import ast
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest
from tests.mistakes import mistake

import spikformer as sf

pytestmark = pytest.mark.core

SOURCE = Path(sf.__file__).parent
FLOW = [
    "errors",
    "validation",
    "config",
    "sampling",
    "preprocessing",
    "card",
    "paper",
    "successors",
    "presets",
    "io",
    "tensorfile",
    "weights",
    "pickles",
    "neurons",
    "layers",
    "models",
    "data",
    "training",
    "analysis",
    "visualise",
    "engine",
    "runs",
    "page",
    "cli",
]
PARALLEL = {
    ("training", "analysis"),
    ("data", "analysis"),
    ("data", "visualise"),
    ("data", "engine"),
    ("training", "engine"),
    ("analysis", "engine"),
    ("visualise", "engine"),
}  # neither reads the other
LAZY = {"engine/predict.py": {"data"}}  # a file's reader, imported when a file is given


def imported_rooms(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute here"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    ours = [name.split(".")[1] for name in names if name.startswith("spikformer.")]
    return {room for room in ours if room != "_native" and room != "__version__"}


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_room_imports_only_from_its_left(file: Path) -> None:
    room = file.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    assert room in FLOW, f"{room} has no place in the flow; give it one in docs/architecture.md and here"
    lazy = LAZY.get(file.relative_to(SOURCE).as_posix(), set())
    for other in imported_rooms(file) - {room} - lazy:
        assert other in FLOW, f"{file.name} imports spikformer.{other}: name the room it lives in"
        assert FLOW.index(other) < FLOW.index(room), f"{file.name} in {room} imports {other}, which is to its right"
        assert (other, room) not in PARALLEL, f"{room} and {other} do not read each other"


def test_every_room_is_in_the_flow() -> None:
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert rooms - {"__init__", "__pycache__"} == set(FLOW)


HELP = """
import runpy, sys
from contextlib import suppress
from pathlib import Path
sys.argv[1:] = ["--help"]
with suppress(SystemExit):
    runpy.run_path(str(Path(sys.executable).with_name("spikformer")), run_name="__main__")
assert "spikformer.runs" not in sys.modules
"""


@pytest.mark.parametrize("code", ["import spikformer", HELP], ids=["import", "help"])
def test_import_and_help_leave_heavy_libraries_alone(code: str) -> None:
    heavy = "{'torch', 'numpy', 'sklearn', 'tyro', 'rich'}"
    code += f"\nimport sys\nassert not {heavy} & set(sys.modules), sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_public_names_are_there_and_nothing_else() -> None:
    for name in sf.__all__:
        assert getattr(sf, name) is not None
    assert {name for name in dir(sf) if not name.startswith("__")} == set(sf.__all__)
    with mistake(AttributeError, "nonsense", name="nonsense"):
        attrgetter("nonsense")(sf)
