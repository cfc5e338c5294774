"""DVS128 Gesture: stretches of recordings by label files and trial lists."""

import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spikformer.data import DamagedFilesError, open_dataset
from spikformer.data.events.formats import read_recording
from spikformer.data.events.sets import GESTURES
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


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("trials_to_train.txt", "", r"trials_to_train\.txt names no recordings"),
        ("trials_to_train.txt", "user09_led.aedat", "names user09_led.aedat, but .* does not hold it"),
        ("trials_to_train.txt", "../user01_led.aedat", "expected the name of an .aedat file"),
        ("trials_to_train.txt", "user01_led.aedat\nuser01_led.aedat", "names user01_led.aedat twice"),
        ("trials_to_train.txt", "user24_led.aedat", "user24_led.aedat is in both trial lists"),
        ("user01_led_labels.csv", "", "should start with the line class,startTime_usec,endTime_usec, got ''"),
        ("user01_led_labels.csv", "class,startTime_usec,endTime_usec\n", "holds no gestures"),
        ("user01_led_labels.csv", "class,startTime_usec,endTime_usec\n1,2", r"line 2: expected three integers"),
        ("user01_led_labels.csv", "class,startTime_usec,endTime_usec\n1,2,x", r"got '1,2,x'"),
        ("user01_led_labels.csv", "class,startTime_usec,endTime_usec\n12,0,9", "line 2: the class is 12, expected 1"),
        ("user01_led_labels.csv", "class,startTime_usec,endTime_usec\n0,0,9", "the class is 0, expected 1 to 11"),
        ("user01_led_labels.csv", "class,startTime_usec,endTime_usec\n1,9,9", "starts at 9 and ends at 9 µs"),
        ("user01_led_labels.csv", f"class,startTime_usec,endTime_usec\n1,9,{2**63}", "expected less than 2⁶³"),
        ("user01_led_labels.csv", "x" * 2_000_000, "2000000 bytes, expected 1048576 at most"),
        ("trials_to_train.txt", "a\x1b[31m.aedat", r"names a \[31m\.aedat, but"),
        ("trials_to_train.txt", 2 * "".join(f"{n}.aedat\n" for n in range(40_000)), r"names 0\.aedat twice"),
    ],
)
def test_damaged_gesture_lists(file: str, text: str, sentence: str, make_gestures) -> None:
    folder = make_gestures()
    (folder / file).write_text(text)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        open_dataset("dvs128", folder)


@pytest.mark.parametrize("file", ["user01_led_labels.csv", "trials_to_test.txt"])
def test_missing_gesture_lists(file: str, make_gestures) -> None:
    folder = make_gestures()
    (folder / file).unlink()
    with pytest.raises(FileNotFoundError, match=rf"There is no file .*{file}; it comes with the recordings"):
        open_dataset("dvs128", folder)


def test_a_stretch_without_events_is_told_when_it_is_read(make_gestures) -> None:
    folder = make_gestures()
    labels = "class,startTime_usec,endTime_usec\n1,500000,600000\n2,1000000,1100000\n"
    (folder / "user24_led_labels.csv").write_text(labels)
    data = open_dataset("dvs128", folder)
    assert data.test[1].sum() == 60
    with pytest.raises(ValueError, match=r"user24_led\.aedat, 500000 to 600000 µs holds no events"):
        data.test[0]


def test_people_of_validation_are_not_in_training(make_gestures) -> None:
    folder = make_gestures()
    data = open_dataset("dvs128", folder, validation_share=0.5, cache_gb=0)
    names = [{Path(split.source(i)).name[:6] for i in range(len(split))} for split in (data.train, data.validation)]
    assert sorted(map(sorted, names)) == [["user01"], ["user02"]]


def test_all_bad_label_files_are_told(make_gestures) -> None:
    folder = make_gestures()
    for user in ("01", "24"):
        (folder / f"user{user}_led_labels.csv").write_text("nothing")
    with pytest.raises(DamagedFilesError) as damage:
        open_dataset("dvs128", folder)
    assert [Path(sentence.split()[0]).name[:6] for sentence in damage.value.messages] == ["user01", "user24"]


@given(st.text(max_size=80))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_label_file_is_read_or_refused_in_a_sentence(make_gestures, tmp_path: Path, rows: str) -> None:
    folder = tmp_path / "DvsGesture" if (tmp_path / "DvsGesture").exists() else make_gestures()
    text = f"class,startTime_usec,endTime_usec\n{rows}"
    (folder / "user24_led_labels.csv").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        told = f"{len(open_dataset('dvs128', folder, cache_gb=0).test)} samples"
    except ValueError as error:
        told = str(error)
    assert told.startswith((str(folder / "user24_led_labels.csv"), "1 samples", "2 samples", "3 samples"))
