"""Small JSON files: what is too large or too deep raises before it takes memory."""

from pathlib import Path

import pytest
from tests.limits import run_limited
from tests.mistakes import file_error

from spikformer.io import read_bounded, read_json


def test_what_a_run_writes_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1, {"b": null}]}')
    assert read_json(tmp_path / "a.json") == {"a": [1, {"b": None}]}
    assert read_bounded(tmp_path / "a.json") == b'{"a": [1, {"b": null}]}'


@pytest.mark.parametrize("depth", [40, 900, 100_000])
def test_deep_nesting(tmp_path: Path, depth: int) -> None:
    (tmp_path / "a.json").write_text("[" * depth + "]" * depth)
    with file_error(tmp_path / "a.json", "too_large"):
        read_json(tmp_path / "a.json")


def test_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(2**30)
    code = """
for read in (read_json, read_bounded):
    try:
        read(Path(sys.argv[1]))
    except ValueError as error:
        print(error)
"""
    imports = "from pathlib import Path\nfrom spikformer.io import read_bounded, read_json"
    outcome = run_limited(imports, code, tmp_path / "a.json", megabytes=64)
    assert outcome.output.count("a.json is larger than 4 MB") == 2, outcome.errors


SIZE = 4 * 2**20
FILES = {
    "lists.json": b"[" + b"[[[0]]]," * (SIZE // 8 - 1) + b"0]",
    "rows.csv": b"epoch,train_loss\n" + b"1,2\n" * (SIZE // 4 - 5),
}


@pytest.mark.parametrize("name", FILES)
def test_parsing_the_largest_file_takes_the_memory_that_is_stated(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(FILES[name])
    imports = "import sys; from pathlib import Path; from spikformer.runs.folder import Run\n"
    imports += "from spikformer.io import read_json"
    code = """
path = Path(sys.argv[1])
if path.suffix == ".json":
    read_json(path)
else:
    path = path.rename(path.with_name("metrics.csv"))
    try:
        Run(path.parent).metrics
    except ValueError as error:
        assert str(path) in str(error), error
"""
    outcome = run_limited(imports, code, path, megabytes=(50 if path.suffix == ".json" else 100) * SIZE >> 20)
    assert outcome.exit_code == 0, outcome.errors
