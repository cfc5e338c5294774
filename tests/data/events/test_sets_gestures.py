"""DVS128 Gesture: stretches of recordings by label files and trial lists."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.mistakes import file_error, mistake, shows

from spikformer.data import DamagedFilesError, open_dataset
from spikformer.data.events.formats import read_recording
from spikformer.data.events.sets import GESTURES
from spikformer.errors import FileError
from spikformer.sampling import to_frames


def test_gestures_are_stretches_of_the_official_trials(make_gestures) -> None:
    folder = make_gestures()
    data = open_dataset("dvs128", folder, time_steps=3, validation_share=0, cache_gb=0)
    assert (data.class_names, len(data.train), len(data.test)) == (GESTURES, 6, 3)
    assert not data.can_mirror
    assert data.train.labels.tolist() == [7, 4, 7, 7, 4, 7]  # a class twice and another order are kept
    whole = read_recording(folder / "user24_led.aedat")
    inside = (whole.time_us >= 1_000_000) & (whole.time_us < 1_100_000)
    assert data.test[1].sum() == inside.sum() == 60
    first = to_frames(whole._replace(**{name: getattr(whole, name)[inside] for name in whole._fields[:4]}), 3)
    assert np.array_equal(data.test[1], first)
    assert data.test.source(1).endswith("user24_led.aedat, 1000000 to 1100000 µs")


@pytest.mark.parametrize("given", ["the archive", "its folder"])
def test_gestures_from_the_archive(given: str, make_gestures, tmp_path: Path) -> None:
    folder = make_gestures()
    expected = open_dataset("dvs128", tmp_path, time_steps=3, cache_gb=0).test[0]
    archive = tmp_path / "elsewhere" / "DvsGesture.tar.gz"
    archive.parent.mkdir()
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder, "DvsGesture")
        note = tarfile.TarInfo("DvsGesture/README.pdf")
        packed.addfile(note, io.BytesIO())
    data = open_dataset("dvs128", archive if given == "the archive" else archive.parent, time_steps=3, cache_gb=0)
    assert np.array_equal(data.test[0], expected)
    assert not (archive.parent / "DvsGesture" / "README.pdf").exists()


COLUMNS = "class,startTime_usec,endTime_usec"


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("", "empty", None),
        ("../user01_led.aedat", "damaged", "user01_led.aedat"),
        ("user01_led.aedat\nuser01_led.aedat", "damaged", "user01_led.aedat"),
        (2 * "".join(f"{n}.aedat\n" for n in range(40_000)), "damaged", "0.aedat"),
    ],
    ids=["empty", "elsewhere", "twice", "many"],
)
def test_damaged_trial_lists(text: str, reason: str, at: str | None, make_gestures) -> None:
    folder = make_gestures()
    (folder / "trials_to_train.txt").write_text(text)
    with file_error(folder / "trials_to_train.txt", reason, at=at):
        open_dataset("dvs128", folder)


@pytest.mark.parametrize(
    ("text", "shown"), [("user09_led.aedat", "user09_led.aedat"), ("a\x1b[31m.aedat", "[31m.aedat")]
)
def test_a_trial_without_its_recording(text: str, shown: str, make_gestures) -> None:
    folder = make_gestures()
    (folder / "trials_to_train.txt").write_text(text)
    with mistake(FileNotFoundError, folder / "trials_to_train.txt", shown) as caught:
        open_dataset("dvs128", folder)
    assert str(caught.value).isprintable()


def test_a_recording_in_both_trial_lists(make_gestures) -> None:
    folder = make_gestures()
    (folder / "trials_to_train.txt").write_text("user24_led.aedat")
    with file_error(folder, "unfit", at="user24_led.aedat"):
        open_dataset("dvs128", folder)


@pytest.mark.parametrize(
    ("text", "reason", "at", "shown"),
    [
        ("", "foreign", 1, COLUMNS),
        (f"{COLUMNS}\n", "empty", None, ""),
        (f"{COLUMNS}\n1,2", "damaged", 2, "'1,2'"),
        (f"{COLUMNS}\n1,2,x", "damaged", 2, "'1,2,x'"),
        (f"{COLUMNS}\n12,0,9", "damaged", 2, 12),
        (f"{COLUMNS}\n0,0,9", "damaged", 2, 0),
        (f"{COLUMNS}\n1,9,9", "damaged", 2, 9),
        (f"{COLUMNS}\n1,9,{2**63}", "damaged", 2, 2**63),
        ("x" * 2_000_000, "too_large", None, 2000000),
    ],
    ids=["empty", "header alone", "few", "letter", "class 12", "class 0", "no time", "long", "large"],
)
def test_damaged_labels(text: str, reason: str, at: int | None, shown: object, make_gestures) -> None:
    folder = make_gestures()
    (folder / "user01_led_labels.csv").write_text(text)
    with file_error(folder / "user01_led_labels.csv", reason, shown, at=at):
        open_dataset("dvs128", folder)


@pytest.mark.parametrize("file", ["user01_led_labels.csv", "trials_to_test.txt"])
def test_missing_gesture_lists(file: str, make_gestures) -> None:
    folder = make_gestures()
    (folder / file).unlink()
    with mistake(FileNotFoundError, folder / file):
        open_dataset("dvs128", folder)


def test_a_stretch_without_events_is_reported_when_it_is_read(make_gestures) -> None:
    folder = make_gestures()
    labels = "class,startTime_usec,endTime_usec\n1,500000,600000\n2,1000000,1100000\n"
    (folder / "user24_led_labels.csv").write_text(labels)
    data = open_dataset("dvs128", folder)
    assert data.test[1].sum() == 60
    with mistake(FileError, reason="empty") as caught:
        data.test[0]
    assert str(caught.value.path).startswith(str(folder / "user24_led.aedat"))
    assert all(shows(str(caught.value), time) for time in (500000, 600000))


def test_people_of_validation_are_not_in_training(make_gestures) -> None:
    folder = make_gestures()
    data = open_dataset("dvs128", folder, validation_share=0.5, cache_gb=0)
    names = [{Path(split.source(i)).name[:6] for i in range(len(split))} for split in (data.train, data.validation)]
    assert sorted(map(sorted, names)) == [["user01"], ["user02"]]


def test_all_bad_label_files_are_reported(make_gestures) -> None:
    folder = make_gestures()
    for user in ("01", "24"):
        (folder / f"user{user}_led_labels.csv").write_text("nothing")
    with pytest.raises(DamagedFilesError) as damage:
        open_dataset("dvs128", folder)
    assert [error.path.name[:6] for error in damage.value.errors] == ["user01", "user24"]


@given(st.text(max_size=80))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_label_file_is_read_or_rejected_with_a_message(make_gestures, tmp_path: Path, rows: str) -> None:
    folder = tmp_path / "DvsGesture" if (tmp_path / "DvsGesture").exists() else make_gestures()
    text = f"class,startTime_usec,endTime_usec\n{rows}"
    (folder / "user24_led_labels.csv").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        reported = f"{len(open_dataset('dvs128', folder, cache_gb=0).test)} samples"
    except ValueError as error:
        reported = str(error)
    assert reported.startswith((str(folder / "user24_led_labels.csv"), "1 samples", "2 samples", "3 samples"))
