"""The table of addresses: every entry well-formed, none twice."""

import re
from urllib.parse import urlsplit

import pytest

from spikformer.data.addresses import SOURCES


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
