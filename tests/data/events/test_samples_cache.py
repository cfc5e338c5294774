"""The cache of frames: bounded, shared, and never in the way."""

import logging
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from spikformer.data.events.samples import FrameCache
from spikformer.io import TEMP_SUFFIX, atomic_file

FRAMES = np.random.default_rng(0).integers(0, 256, (4, 2, 16, 16)).astype(np.uint8)  # noise: 2 KB, deflated or not


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = FrameCache(tmp_path, 10**6)
    assert cache.get("key") is None
    cache.put("key", FRAMES)
    assert np.array_equal(cache.get("key"), FRAMES)
    assert cache.get("other") is None


@pytest.mark.parametrize(
    "frames",
    [FRAMES[0], FRAMES.astype(np.float64), FRAMES.T, FRAMES[:0]],
    ids=["three axes", "another type", "another order", "empty"],
)
def test_an_entry_of_another_form_counts_as_missing(frames: np.ndarray, tmp_path: Path) -> None:
    cache = FrameCache(tmp_path, 10**6)
    cache.put("key", frames)
    assert cache.get("key") is None


@pytest.mark.parametrize("shape", [b"(4, 2, 16, 17)", b"(9, 9, 99999, 999999999)", b"(-1, 2, 16, 16)", b"(4, 2, 16"])
def test_a_right_checksum_over_a_wrong_header_counts_as_missing(shape: bytes, tmp_path: Path) -> None:
    cache = FrameCache(tmp_path, 10**6)
    cache.put("key", FRAMES)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()[12:].replace(b"(4, 2, 16, 16)", shape)
    path.write_bytes(b"spikfrm1" + zlib.crc32(content).to_bytes(4, "little") + content)
    assert cache.get("key") is None


def test_it_stays_within_its_limit(tmp_path: Path) -> None:
    cache = FrameCache(tmp_path, 100_000)
    for number in range(200):
        cache.put(str(number), FRAMES)
        assert size_of(tmp_path) <= 100_000
    assert size_of(tmp_path) > 80_000
    assert np.array_equal(cache.get("199"), FRAMES)
    assert cache.get("0") is None


def test_what_was_read_last_stays_longest(tmp_path: Path) -> None:
    cache = FrameCache(tmp_path, 50_000)
    for number in range(10):
        cache.put(str(number), FRAMES)
        for path in tmp_path.iterdir():  # a while ago
            os.utime(path, ns=(0, path.stat().st_mtime_ns - 10**10))
    cache.get("0")
    for number in range(10, 30):
        cache.put(str(number), FRAMES)
    assert cache.get("0") is not None
    assert cache.get("1") is None


def test_two_processes_share_it_and_its_limit(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np; from pathlib import Path; from spikformer.data.events.samples import FrameCache\n"
        "cache = FrameCache(Path(sys.argv[1]), 200_000); random = np.random.default_rng(0)\n"
        "for n in range(200):\n"
        "    frames = np.random.default_rng(n).integers(0, 256, (4, 2, 16, 16)).astype(np.uint8)\n"
        "    cache.put(str(n), frames)\n"
        "    got = cache.get(str(n))\n"
        "    assert got is None or np.array_equal(got, frames)\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code, tmp_path]) for _ in range(2)]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    assert size_of(tmp_path) <= 200_000 * (1 + 2 / 16)


def test_temporary_files_of_killed_processes_are_removed_and_those_of_live_ones_stay(tmp_path: Path) -> None:
    stale = tmp_path / f".a-0{TEMP_SUFFIX}"
    stale.write_bytes(b"part")
    with atomic_file(tmp_path / "other"):
        (live,) = set(tmp_path.iterdir()) - {stale}
        FrameCache(tmp_path, 10**6).put("key", FRAMES)
        assert not stale.exists()
        assert live.exists()


def test_a_place_that_cannot_be_written_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    cache = FrameCache(tmp_path / "file" / "cache", 10**6)
    with caplog.at_level(logging.WARNING):
        cache.put("a", FRAMES)
        cache.put("b", FRAMES)
    assert cache.get("a") is None
    assert len(caplog.messages) == 1
    assert "Frames are not kept" in caplog.messages[0]


def test_an_entry_larger_than_the_whole_is_not_kept(tmp_path: Path) -> None:
    FrameCache(tmp_path, 1000).put("key", FRAMES)
    assert list(tmp_path.iterdir()) == []
