"""Every target of `make fuzz` works on its own seeds; and what it found once is mended."""

from pathlib import Path

import pytest
from fuzz.targets import TARGETS, run_once

FINDS = sorted((Path(__file__).parent / "finds").iterdir())


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read(name: str, tmp_path: Path) -> None:
    num_read = 0
    for number, seed in enumerate(TARGETS[name].seeds(tmp_path)):
        (folder := tmp_path / str(number)).mkdir()
        try:
            TARGETS[name].read(seed, folder)
            num_read += 1
        except (ValueError, OSError):
            (again := tmp_path / f"{number}_again").mkdir()
            run_once(name, seed, again)
    assert num_read


@pytest.mark.parametrize("find", FINDS, ids=lambda path: path.name)
def test_finds_stay_mended(find: Path, tmp_path: Path) -> None:
    """Named <target>-<what was found>; `run_once` raises if one still is a find."""
    run_once(find.name.partition("-")[0], find.read_bytes(), tmp_path)
