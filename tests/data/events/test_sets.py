"""Event sets by name, from files as they are published, made small."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.mistakes import file_error, mistake

from spikformer.data import DamagedFilesError, open_dataset
from spikformer.data.events.formats import read_recording
from spikformer.sampling import to_frames

pytestmark = pytest.mark.core

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
Rows = list[tuple[int, int, int, int]]


def rows(seed: int, count: int = 60, side: int = 128, start: int = 0) -> Rows:
    random = np.random.default_rng(seed)
    times = start + np.sort(random.integers(0, 100_000, count))
    return [(int(t), *map(int, random.integers(0, side, 2)), int(random.integers(0, 2))) for t in times]


@pytest.fixture
def make_cifar10dvs(tmp_path: Path, writers) -> Callable[..., Path]:
    def make(zipped: bool = False, num_files: int = 10) -> Path:
        for label, name in enumerate(CIFAR10):
            files = {
                f"cifar10_{name}_{n}.aedat": writers.formats["dvs128"].write(rows(100 * label + n))
                for n in range(num_files)
            }
            if zipped:
                with zipfile.ZipFile(tmp_path / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
                    for file, content in files.items():
                        archive.writestr(f"{name}/{file}", content)
            else:
                (tmp_path / name).mkdir()
                for file, content in files.items():
                    (tmp_path / name / file).write_bytes(content)
        return tmp_path

    return make


def test_cifar10dvs_takes_the_first_nine_of_ten_by_name(make_cifar10dvs) -> None:
    root = make_cifar10dvs(num_files=12)
    data = open_dataset("cifar10dvs", root, validation_share=0, time_steps=4, cache_gb=0)
    assert (data.class_names, data.channels, data.size, data.events) == (CIFAR10, 2, (128, 128), True)
    assert data.can_mirror
    names = [Path(data.train.source(index)).stem.removeprefix("cifar10_airplane_") for index in range(11)]
    assert names == ["0", "1", "10", "11", "2", "3", "4", "5", "6", "7", "8"]  # sorted as text, 90 % rounded up
    assert Path(data.test.source(0)).stem == "cifar10_airplane_9"
    assert np.bincount(data.train.labels).tolist() == [11] * 10
    assert np.bincount(data.test.labels).tolist() == [1] * 10


def test_cifar10dvs_frames_have_rows_and_columns_swapped(make_cifar10dvs) -> None:
    data = open_dataset("cifar10dvs", make_cifar10dvs(), time_steps=4, cache_gb=0)
    frames = to_frames(read_recording(data.test.source(0)), 4)
    assert np.array_equal(data.test[0], frames.transpose(0, 1, 3, 2))


def test_cifar10dvs_from_zips_equals_the_folders(make_cifar10dvs, tmp_path: Path) -> None:
    root = make_cifar10dvs(zipped=True)
    zipped = open_dataset("cifar10dvs", root, time_steps=2, cache_gb=0)
    frames = [zipped.test[index] for index in range(10)]
    for name in CIFAR10:
        (root / f"{name}.zip").unlink()
    folders = open_dataset("cifar10dvs", root, time_steps=2, cache_gb=0)
    assert all(np.array_equal(folders.test[index], frames[index]) for index in range(10))


def test_cifar10dvs_without_a_class(make_cifar10dvs) -> None:
    root = make_cifar10dvs(num_files=1)
    shutil.rmtree(root / "frog")
    with mistake(FileNotFoundError, root, "frog/", "frog.zip"):
        open_dataset("cifar10dvs", root)
    (root / "frog").mkdir()
    (root / "cat" / "cifar10_cat_0.aedat").unlink()
    with pytest.raises(DamagedFilesError) as damage:
        open_dataset("cifar10dvs", root)
    found = [(error.path, error.reason) for error in damage.value.errors]
    assert found == [(root / name, "empty") for name in ("cat", "frog")]


@pytest.mark.parametrize("zipped", [False, True])
def test_n_mnist(zipped: bool, tmp_path: Path, writers) -> None:
    for split, digits in (("Train", range(10)), ("Test", (3, 7))):
        files = {f"{split}/{n}/0000{n}.bin": writers.formats["nmnist"].write(rows(n, side=34)) for n in digits}
        if zipped:
            with zipfile.ZipFile(tmp_path / f"{split}.zip", "w") as archive:
                for name, content in files.items():
                    archive.writestr(name, content)
        else:
            for name, content in files.items():
                (tmp_path / name).parent.mkdir(parents=True)
                (tmp_path / name).write_bytes(content)
    data = open_dataset("n_mnist", tmp_path, time_steps=2, cache_gb=0)
    assert (data.size, data.class_names, data.can_mirror) == ((34, 34), tuple("0123456789"), False)
    assert data.test.labels.tolist() == [3, 7]
    assert data.test[0].sum() == 60


def test_n_mnist_without_its_test_split(tmp_path: Path, writers) -> None:
    (tmp_path / "Train" / "5").mkdir(parents=True)
    (tmp_path / "Train" / "5" / "1.bin").write_bytes(writers.formats["nmnist"].write(rows(0, side=34)))
    with mistake(FileNotFoundError, tmp_path, "Test/", "Test.zip"):
        open_dataset("n_mnist", tmp_path)


def test_a_folder_of_any_formats(tmp_path: Path, writers, some_rows: Rows) -> None:
    for name, form in writers.formats.items():
        folder = tmp_path / "train" / name
        folder.mkdir(parents=True)
        for number in range(2):
            (folder / f"{number}{form.ending}").write_bytes(form.write(some_rows))
    shutil.copytree(tmp_path / "train", tmp_path / "test")
    data = open_dataset("event_folder", tmp_path, size=(24, 32), time_steps=2, cache_gb=0)
    assert data.class_names == tuple(sorted(writers.formats))
    assert data.size == (24, 32)
    for index in range(len(data.test)):
        assert data.test[index].shape == (2, 2, 24, 32)
        assert data.test[index].sum() == len(some_rows)


def test_a_folder_takes_the_size_of_its_first_good_recording(tmp_path: Path, writers, some_rows: Rows) -> None:
    (tmp_path / "test" / "a").mkdir(parents=True)
    (tmp_path / "test" / "a" / "0.aedat").write_bytes(b"#!AER-DAT2.0\r\nnot events")
    (tmp_path / "test" / "a" / "1.aedat").write_bytes(writers.formats["davis240"].write(some_rows))
    (tmp_path / "test" / "a" / "2.aedat").write_bytes(writers.formats["dvs128"].write(some_rows))
    data = open_dataset("event_folder", tmp_path, cache_gb=0)
    assert data.size == (180, 240)
    assert data.test[2].shape == (16, 2, 180, 240)
    with file_error(tmp_path / "test" / "a" / "0.aedat", "truncated"):
        data.test[0]
    (tmp_path / "test" / "a" / "1.aedat").unlink()
    (tmp_path / "test" / "a" / "2.aedat").unlink()
    with mistake(DamagedFilesError, path=tmp_path / "test" / "a" / "0.aedat", reason="truncated"):
        open_dataset("event_folder", tmp_path, cache_gb=0)


def write_events(path: Path, places: list[tuple[int, int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = np.zeros(len(places), [("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "?")])
    table["x"], table["y"] = zip(*places, strict=True)
    np.save(path, table)


def test_recordings_that_do_not_say_their_sensor_share_one(tmp_path: Path) -> None:
    """One event far out tells the camera of them all."""
    places = [(60, 55), (64, 60)]
    for number in range(10):
        write_events(tmp_path / "test" / "a" / f"{number}.npy", [*places, (239, 179)] if number == 5 else places)
    data = open_dataset("event_folder", tmp_path, time_steps=1, cache_gb=0)
    assert data.size == (180, 240)
    for index in range(10):
        assert np.argwhere(data.test[index])[0].tolist() == [0, 0, 55, 60]
    data = open_dataset("event_folder", tmp_path, time_steps=1, sensor=(128, 128), cache_gb=0)
    assert np.argwhere(data.test[0])[0].tolist() == [0, 0, 55, 60]
    with file_error(tmp_path / "test" / "a" / "5.npy", "unfit", 179, 239, "128×128"):
        data.test[5]


def test_slicing_and_fit_have_their_effect(tmp_path: Path, writers) -> None:
    events = [(t, 5, 5, 1) for t in (0, 1, 2, 3, 4, 5, 6, 7, 8, 99)]
    (tmp_path / "test" / "a").mkdir(parents=True)
    (tmp_path / "test" / "a" / "0.aedat").write_bytes(writers.formats["dvs128"].write(events))

    def counts(**options: object) -> list[int]:
        data = open_dataset("event_folder", tmp_path, time_steps=2, cache_gb=0, **options)
        return data.test[0].sum((1, 2, 3)).tolist()

    assert counts() == [5, 5]
    assert counts(slicing="time") == [9, 1]
    assert counts(size=(64, 64)) == [5, 5]
    assert counts(size=(64, 64), fit="crop") == [0, 0]
