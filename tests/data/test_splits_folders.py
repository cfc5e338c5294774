"""Folders of classes: what is a split, what is a class, and whether a mirror image keeps it."""

from pathlib import Path

import numpy as np
import pytest
from tests.mistakes import file_error, mistake

from spikformer.data import DamagedFilesError
from spikformer.data.splits import ClassFolders, Kind, can_mirror, scan_folders

pytestmark = pytest.mark.core


PICTURES = Kind("images", (".jpg", ".jpeg", ".png", ".tiff", ".webp"))


def scan_folder(root: Path, class_names: list[str] | None = None) -> ClassFolders:
    return scan_folders(root, PICTURES, class_names)


def make(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        if not file.endswith("/"):
            (root / file).touch()
        else:
            (root / file).mkdir(exist_ok=True)
    return root


def test_classes_are_sorted_and_files_in_order(tmp_path: Path) -> None:
    make(tmp_path, "train/dog/b.jpg", "train/dog/a.jpg", "train/cat/z.png", "val/dog/1.jpg", "train/Ant/x.JPEG")
    folder = scan_folder(tmp_path)
    assert folder.class_names == ("Ant", "cat", "dog")
    train = folder.splits["train"]
    relative = [str(Path(path).relative_to(tmp_path)) for path in train.paths]
    assert relative == ["train/Ant/x.JPEG", "train/cat/z.png", "train/dog/a.jpg", "train/dog/b.jpg"]
    assert train.labels.tolist() == [0, 1, 2, 2]
    assert train.labels.dtype == "int64"
    assert folder.splits["validation"].labels.tolist() == [2]  # counted by train's classes, not by its own
    assert list(folder.splits) == ["train", "validation"]


@pytest.mark.parametrize(("name", "split"), [("val", "validation"), ("validation", "validation"), ("test", "test")])
def test_one_split_alone_is_enough_for_evaluation(name: str, split: str, tmp_path: Path) -> None:
    folder = scan_folder(make(tmp_path, f"{name}/cat/a.jpg", f"{name}/dog/a.jpg"))
    assert folder.class_names == ("cat", "dog")
    assert folder.splits[split].labels.tolist() == [0, 1]
    assert list(folder.splits) == [split]


def test_a_part_of_a_set_is_labelled_by_the_models_classes(tmp_path: Path) -> None:
    make(tmp_path, "val/n03/a.jpg", "val/n01/a.jpg")
    folder = scan_folder(tmp_path, class_names=["n04", "n03", "n02", "n01"])
    assert folder.class_names == ("n04", "n03", "n02", "n01")
    assert folder.splits["validation"].labels.tolist() == [1, 3]
    with file_error(tmp_path, "unfit", "validation", "n01"):
        scan_folder(tmp_path, class_names=["n03"])


def test_hidden_and_other_files_are_left_alone(tmp_path: Path) -> None:
    make(
        tmp_path,
        "train/cat/a.jpg",
        "train/cat/.b.jpg",
        "train/cat/Thumbs.db",
        "train/cat/notes.txt",
        "train/cat/d.jpg/",
    )
    make(tmp_path, "train/.git/x.jpg", "train/readme.md", "train/stray.jpg", "__MACOSX/", "notes/")
    folder = scan_folder(tmp_path)
    assert folder.class_names == ("cat",)
    assert [Path(path).name for path in folder.splits["train"].paths] == ["a.jpg"]


def test_endings_in_any_case_and_links(tmp_path: Path) -> None:
    make(tmp_path, *(f"train/cat/{number}{ending}" for number, ending in enumerate([".JPG", ".Png", ".tiff", ".WEBP"])))
    (tmp_path / "train/cat/link.jpeg").symlink_to(tmp_path / "train/cat/0.JPG")
    (tmp_path / "train/cat/gone.jpeg").symlink_to(tmp_path / "nowhere")
    (tmp_path / "val").symlink_to(tmp_path / "train")
    folder = scan_folder(tmp_path)
    assert len(folder.splits["train"].paths) == 6, "the one that leads nowhere is reported when it is read"
    assert len(folder.splits["validation"].paths) == 6


@pytest.mark.parametrize(
    ("files", "shown"),
    [((), ""), (("cat/a.jpg", "dog/a.jpg"), "cat, dog"), (("train",), "train")],  # train is a file
)
def test_a_folder_without_splits_says_what_it_holds(files: tuple[str, ...], shown: str, tmp_path: Path) -> None:
    make(tmp_path, *files)
    with mistake(FileNotFoundError, tmp_path, shown):
        scan_folder(tmp_path)


@pytest.mark.parametrize(
    ("files", "where", "reason", "shown"),
    [
        (("train/",), "train", "empty", "images"),
        (("train/notes.txt",), "train", "empty", "images"),
        (("val/1.JPEG", "val/2.JPEG"), "val", "unfit", 2),
        (("train/cat/a.jpg", "train/dog/"), "train/dog", "empty", ".jpg"),
        (("train/cat/a.jpg", "val/cat/a.txt"), "val/cat", "empty", ".jpg"),
        (("train/cat/images/a.jpg",), "train/cat", "empty", ".jpg"),
        (("train/cat/a.jpg", "val/cat/a.jpg", "val/dog/a.jpg"), ".", "unfit", "dog"),
        (("train/cat/a.jpg", *(f"val/{name}/a.jpg" for name in "abcde")), ".", "unfit", "a, b, c and 2"),
        (("val/cat/a.jpg", "validation/cat/a.jpg"), ".", "damaged", "val and validation"),
    ],
)
def test_a_wrong_folder_is_named(files, where: str, reason: str, shown: object, tmp_path: Path) -> None:
    make(tmp_path, *files)
    with file_error(tmp_path / where, reason, shown):
        scan_folder(tmp_path)


def test_no_folder_and_a_file(tmp_path: Path) -> None:
    make(tmp_path, "file.zip", "val/cat/a.jpg")
    with mistake(FileNotFoundError, tmp_path / "none"):
        scan_folder(tmp_path / "none")
    with file_error(tmp_path / "file.zip", "foreign"):
        scan_folder(tmp_path / "file.zip")


def test_a_class_of_train_may_be_missing_in_val(tmp_path: Path) -> None:
    folder = scan_folder(make(tmp_path, "train/cat/a.jpg", "train/dog/a.jpg", "val/dog/a.jpg"))
    assert folder.splits["validation"].labels.tolist() == [1]


def test_folders_that_are_no_split_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = scan_folder(
        make(tmp_path, "train/1/a.jpg", "valid/1/a.jpg", "Testing/1/a.jpg", "extra/1/a.jpg", "__MACOSX/")
    )
    assert list(folder.splits) == ["train", "validation", "test"]
    assert caplog.messages == [f"{tmp_path}: extra is not the name of a split and is left out."]


def test_all_empty_classes_are_reported(tmp_path: Path) -> None:
    with pytest.raises(DamagedFilesError) as damage:
        scan_folder(make(tmp_path, "train/a/", "train/b/1.jpg", "val/c/"))
    assert [error.path.name for error in damage.value.errors] == ["a", "c"]


def test_names_of_splits_in_any_case(tmp_path: Path) -> None:
    folder = scan_folder(make(tmp_path, "Train/1/a.jpg", "TEST/1/a.jpg"))
    assert list(folder.splits) == ["train", "test"]


@pytest.mark.parametrize(
    "name",
    [
        "left",
        "turn-right",
        "right_hand_wave",
        "LeftArm",
        "arm roll clockwise",
        "counter_clockwise",
        "Right",
        "lefthand",
        "turnleft",
        "LEFTTurn",
        "leftwards",
        "cw",
        "ccw",
        "L",
        "b",
        "3",
    ],
)
def test_sides_are_found(name: str) -> None:
    assert not can_mirror(["cat", name])


@pytest.mark.parametrize(
    "name", ["bright", "upright piano", "leftover", "copyright", "clock", "truck", "cwm", "alright", "n01440764", ""]
)
def test_other_words_are_not_sides(name: str) -> None:
    assert can_mirror(["cat", name])


def test_classes_without_splits_are_split_by_class_and_always_alike(tmp_path: Path) -> None:
    for name, count in (("ant", 10), ("bee", 5), ("cat", 2)):
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / f"{number}.png").touch()
    kind = Kind("images", (".png",))
    found = scan_folders(tmp_path, kind, flat=True)
    assert found.class_names == ("ant", "bee", "cat")
    train, test = found.splits["train"], found.splits["test"]
    assert np.bincount(train.labels).tolist() == [8, 4, 2]
    assert np.bincount(test.labels).tolist() == [2, 1]
    assert not set(train.paths) & set(test.paths)
    assert len({*train.paths, *test.paths}) == 17
    (tmp_path / "dog").mkdir()
    (tmp_path / "dog" / "1.png").touch()
    again = scan_folders(tmp_path, kind, flat=True)
    assert list(again.splits["test"].paths) == list(test.paths), "another class moves no file"
    with pytest.raises(FileNotFoundError):
        scan_folders(tmp_path, kind)
