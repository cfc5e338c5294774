"""Addresses are complete, and files are kept in the cache folder."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from spikformer.data.addresses import SOURCES, data_folder


@pytest.mark.parametrize("name", SOURCES)
def test_every_entry_is_well_formed(name: str) -> None:
    source = SOURCES[name]
    assert source.name == name
    assert source.page.startswith("https://")
    assert bool(source.files) != bool(source.by_hand)
    assert len(set(source.file_names)) == len(source.file_names)
    assert all(re.fullmatch(r"[\w.-]+", file_name) for file_name in source.file_names)
    for file in source.files:
        assert re.fullmatch(r"md5:[0-9a-f]{32}|sha256:[0-9a-f]{64}", file.checksum)
        assert file.size_bytes > 0
        assert len({urlsplit(address).netloc for address in file.addresses}) == len(file.addresses)
        assert file.addresses[0].startswith("https://")
        for address in file.addresses:
            assert address.startswith("https://") or file.checksum.startswith("sha256:")
            assert "{" not in address
    everything = [file for other in SOURCES.values() for file in other.files]
    for values in ({file.checksum for file in everything}, {file.addresses for file in everything}):
        assert len(values) == len(everything)


def test_the_data_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path))
    assert data_folder("mnist") == tmp_path / "data" / "mnist"
    monkeypatch.setenv("SPIKFORMER_CACHE", "~/cache")
    assert data_folder("mnist") == Path.home() / "cache" / "data" / "mnist"
    for unset in (lambda: monkeypatch.setenv("SPIKFORMER_CACHE", ""), lambda: monkeypatch.delenv("SPIKFORMER_CACHE")):
        unset()
        assert data_folder("mnist").parts[-2:] == ("data", "mnist")
        assert "spikformer" in data_folder("mnist").parts
