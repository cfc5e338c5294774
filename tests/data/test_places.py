"""Where files are kept."""

from pathlib import Path

from spikformer.data.places import data_folder


def test_the_data_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path))
    assert data_folder("mnist") == tmp_path / "data" / "mnist"
    monkeypatch.setenv("SPIKFORMER_CACHE", "~/cache")
    assert data_folder("mnist") == Path.home() / "cache" / "data" / "mnist"
    for unset in (lambda: monkeypatch.setenv("SPIKFORMER_CACHE", ""), lambda: monkeypatch.delenv("SPIKFORMER_CACHE")):
        unset()
        assert data_folder("mnist").parts[-2:] == ("data", "mnist")
        assert "spikformer" in data_folder("mnist").parts
