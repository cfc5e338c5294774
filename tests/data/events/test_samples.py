"""Frames of recordings: decoded once, then read from disk, and never wrong."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.mistakes import file_error, mistake

from spikformer.data.events.samples import Clip, FrameCache, RecordingSamples
from spikformer.preprocessing import Preprocessing

FORM = Preprocessing(kind="events", size=(34, 34), channels=2, time_steps=4, sensor=(34, 34))


@pytest.fixture
def recording(tmp_path: Path, writers, some_rows) -> Path:
    path = tmp_path / "recording.bin"
    path.write_bytes(writers.formats["nmnist"].write(some_rows))
    return path


@pytest.fixture
def cache(tmp_path: Path) -> FrameCache:
    return FrameCache(tmp_path / "cache", 10**9)


def samples(*clips: Clip, cache: FrameCache | None = None, form: Preprocessing = FORM) -> RecordingSamples:
    return RecordingSamples(clips, np.zeros(len(clips), np.int64), form, cache)


def entries(cache: FrameCache) -> list[Path]:
    return sorted(cache.folder.iterdir()) if cache.folder.is_dir() else []


def spoil_without_a_trace(path: Path) -> None:
    """Other bytes, the same size and time: only someone who reads the file can tell."""
    status = path.stat()
    path.write_bytes(b"\xff" * status.st_size)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_second_epoch_reads_from_the_cache(recording: Path, cache: FrameCache) -> None:
    first = samples(Clip(str(recording)), cache=cache)[0]
    assert np.array_equal(first, samples(Clip(str(recording)))[0])
    spoil_without_a_trace(recording)
    with file_error(recording, "damaged", 255):
        samples(Clip(str(recording)))[0]
    again = samples(Clip(str(recording)), cache=FrameCache(cache.folder, 10**9))[0]
    assert np.array_equal(again, first)
    assert again.dtype == first.dtype == np.uint8


def test_a_file_that_changed_is_decoded_again(recording: Path, cache: FrameCache, writers, some_rows) -> None:
    before = samples(Clip(str(recording)), cache=cache)[0]
    recording.write_bytes(writers.formats["nmnist"].write(some_rows[:4]))
    after = samples(Clip(str(recording)), cache=cache)[0]
    assert (before.sum(), after.sum()) == (len(some_rows), 4)


def test_any_trace_of_a_change_is_enough(
    recording: Path, cache: FrameCache, writers, some_rows, tmp_path: Path
) -> None:
    """Another time of change, another size, another place: each alone makes another entry."""
    clip = Clip(str(recording))
    samples(clip, cache=cache)[0]
    status = recording.stat()
    os.utime(recording, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    samples(clip, cache=cache)[0]
    assert len(entries(cache)) == 2
    recording.write_bytes(writers.formats["nmnist"].write(some_rows[:4]))
    os.utime(recording, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert samples(clip, cache=cache)[0].sum() == 4
    copy = tmp_path / "copy.bin"
    copy.write_bytes(writers.formats["nmnist"].write(some_rows[3:]))
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert np.array_equal(samples(Clip(str(copy)), cache=cache)[0], samples(Clip(str(copy)))[0])


def test_a_place_is_the_same_from_any_folder(recording: Path, cache: FrameCache, monkeypatch) -> None:
    samples(Clip(str(recording)), cache=cache)[0]
    monkeypatch.chdir(recording.parent)
    samples(Clip(recording.name), cache=cache)[0]
    assert len(entries(cache)) == 1


def test_a_file_replaced_between_two_of_its_clips(recording: Path, writers, some_rows) -> None:
    clips = (Clip(str(recording), (0, 10)), Clip(str(recording), (10, 100_000)))
    split = samples(*clips)
    split[0]
    recording.write_bytes(writers.formats["nmnist"].write(some_rows[:4]))
    assert split[1].sum() == 1


@pytest.mark.parametrize(
    "form",
    [
        replace(FORM, time_steps=2),
        replace(FORM, size=(17, 17)),
        replace(FORM, slicing="time"),
        replace(FORM, size=(17, 17), fit="crop"),
    ],
)
def test_other_settings_have_other_entries(form: Preprocessing, recording: Path, cache: FrameCache) -> None:
    clip = Clip(str(recording))
    samples(clip, cache=cache)[0]
    assert np.array_equal(samples(clip, cache=cache, form=form)[0], samples(clip, form=form)[0])
    assert len(entries(cache)) == 2


def test_swapped_frames_have_entries_of_their_own(recording: Path, cache: FrameCache) -> None:
    straight = samples(Clip(str(recording)), cache=cache)[0]
    swapped = RecordingSamples((Clip(str(recording)),), np.zeros(1, np.int64), replace(FORM, swap_axes=True), cache)[0]
    assert np.array_equal(swapped, straight.transpose(0, 1, 3, 2))


def test_all_clips_of_a_file_are_kept_at_once(recording: Path, cache: FrameCache) -> None:
    clips = [Clip(str(recording), stretch) for stretch in ((0, 10), (10, 5000), (5000, 100_000), (200_000, 300_000))]
    expected = [samples(clip)[0] for clip in clips[:3]]
    split = samples(*clips, cache=cache)
    split[1]
    assert len(entries(cache)) == 3  # the last one holds no events
    spoil_without_a_trace(recording)
    assert all(np.array_equal(split[index], expected[index]) for index in range(3))


@pytest.mark.parametrize("damage", ["cut", "empty", "garbage", "one bit"])
def test_a_damaged_entry_is_rebuilt(damage: str, recording: Path, cache: FrameCache) -> None:
    first = samples(Clip(str(recording)), cache=cache)[0]
    (entry,) = entries(cache)
    whole = entry.read_bytes()
    flipped = whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:]
    entry.write_bytes({"cut": whole[:-5], "empty": b"", "garbage": b"\x00" * 100, "one bit": flipped}[damage])
    assert np.array_equal(samples(Clip(str(recording)), cache=cache)[0], first)
    assert entry.read_bytes() == whole


def test_an_entry_of_another_shape_is_rebuilt(recording: Path, cache: FrameCache) -> None:
    split = samples(Clip(str(recording)), cache=cache)
    first = split[0]
    cache.put(split._key(split.clips[0]), first[:, :, 1:])
    assert np.array_equal(split[0], first)
    assert np.array_equal(cache.get(split._key(split.clips[0])), first)


def test_counts_above_a_byte_survive(tmp_path: Path, writers, cache: FrameCache) -> None:
    path = tmp_path / "busy.bin"
    path.write_bytes(writers.formats["nmnist"].write([(t, 3, 4, 1) for t in range(40_000)]))
    for form in (FORM, replace(FORM, time_steps=1)):
        split = samples(Clip(str(path)), cache=cache, form=form)
        assert split[0].max() == split[0].max() == 40_000 / form.time_steps


def test_a_missing_file_is_reported(tmp_path: Path, cache: FrameCache) -> None:
    for kept in (cache, None):
        with mistake(FileNotFoundError, tmp_path / "nothing.bin"):
            samples(Clip(str(tmp_path / "nothing.bin")), cache=kept)[0]
