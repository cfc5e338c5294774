"""The README is true: its Python runs, its commands run, its tree exists."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from spikformer.analysis.golden import GOLDEN_FOLDER

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = re.findall(r"^\| `spikformer (.*?)` \|", README, re.MULTILINE)


def run(command: list[str], folder: Path) -> str:
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_python_runs(tmp_path: Path) -> None:
    assert len(SNIPPETS) == 2
    run([sys.executable, "-W", "error", "-c", "\n".join(SNIPPETS)], tmp_path)


def test_commands_run_in_their_order(tmp_path: Path) -> None:
    """As printed, but for the length of training; CHECKPOINT is a real one, and PICTURE a digit."""
    program = str(Path(sys.executable).with_name("spikformer"))
    verbs = re.findall(r"^  (\w+)  ", run([program, "--help"], tmp_path), re.MULTILINE)
    assert {command.split()[0] for command in COMMANDS} == set(verbs)
    shutil.copy(GOLDEN_FOLDER / "official_timm_checkpoint.pth.tar", tmp_path / "CHECKPOINT")
    digit = Image.fromarray((16 * load_digits().images[0]).clip(0, 255).astype(np.uint8))
    digit.save(tmp_path / "PICTURE", format="PNG")
    for command in COMMANDS:
        words = command.replace("--num-heads 12", "--num-heads 4").split()
        words += ["--epochs", "1"] if words[0] in ("train", "ablate") else []
        words += ["--seeds", "0", "--only", "ssa", "none"] if words[0] == "ablate" else []
        assert run([program, *words], tmp_path)


def test_the_tree_exists() -> None:
    tree = README.split("## What is where")[1].split("Read these five")[0]
    for name in re.findall(r"^ {4,6}([\w./]+/|\w+\.py)", tree, re.MULTILINE):
        assert (ROOT / name).exists() or (ROOT / "src/spikformer" / name).exists(), name


def test_files_of_the_architecture_exist() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Tensors")[0]
    for row in re.findall(r"^\| `.*$", table, re.MULTILINE):
        rooms = re.findall(r"`([\w/]+/)`", row.split("|")[1])
        for name in re.findall(r"`([\w/]+\.(?:py|cpp|hpp))`", row):
            places = [ROOT / room / name for room in ("src/spikformer", *rooms)]
            places += [ROOT / "src/spikformer" / room / name for room in rooms]
            assert any(place.exists() for place in places), name


def test_files_to_touch_exist() -> None:
    lists = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## Adding a …")[1]
    for name in re.findall(r"`([\w.]+(?:/[\w.]+)+/?)`", lists):
        assert (ROOT / name).exists() or (ROOT / "src/spikformer" / name).exists(), name


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_in_its_order(page: Path, tmp_path: Path) -> None:
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    code = "\n".join(snippets)
    run([sys.executable, "-W", "error", "-c", code], tmp_path)


def test_pictures_of_the_documentation_are_drawn_by_their_script() -> None:
    names = {path.stem for path in (ROOT / "docs" / "pictures").glob("*.jpg")}
    script = (ROOT / "docs" / "pictures" / "draw.py").read_text(encoding="utf-8")
    assert names == set(re.findall(r'^    "(\w+)": draw_', script, re.MULTILINE))


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    assert all((page.parent / link).exists() for link in links if not link.startswith("http")), links


@pytest.mark.parametrize("page", [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))])
def test_tests_that_are_named_exist(page: Path) -> None:
    for name in re.findall(r"`(tests/[\w/]+\.\w+)", page.read_text(encoding="utf-8")):
        assert (ROOT / name).exists(), name


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 200
