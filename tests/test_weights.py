"""Names of networks that come with the package, wherever weights are asked for."""

import os
from pathlib import Path

import pytest
from tests.mistakes import unknown_name

import spikformer as sf
from spikformer.weights import FOLDER, find_weights, is_shipped

pytestmark = pytest.mark.core

KIND = "file, folder or shipped network"


@pytest.mark.parametrize("path", ["net.safetensors", "./net", "runs/net", "/net", "net/", ".", ".."])
def test_a_separator_or_a_suffix_makes_a_path(path: str) -> None:
    assert find_weights(path) == Path(path)


def test_names_that_are_there_are_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net").mkdir()
    assert find_weights("net") == Path("net")
    assert not is_shipped(Path("net"))


@pytest.mark.parametrize(
    "call", [find_weights, sf.load, sf.compile_engine, sf.evaluate], ids=lambda call: call.__name__
)
def test_unknown_names(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with unknown_name(KIND, "nowhere"):
        call("nowhere")


@pytest.mark.parametrize("name", sf.list_weights())
def test_a_shipped_name_wins(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    assert find_weights(name) == FOLDER / f"{name}.safetensors"
    assert is_shipped(find_weights(name))
    assert find_weights(f".{os.sep}{name}") == Path(name)
