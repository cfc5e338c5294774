"""`spikformer data`: sheets and checks, and training and evaluation on a user's own folders."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.mistakes import shows


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Cats and dogs, one cat of each split damaged."""
    root = tmp_path / "photographs"
    for split, count in (("train", 20), ("val", 4)):
        for name, brightness in (("cat", 30), ("dog", 220)):
            (root / split / name).mkdir(parents=True)
            for number in range(count):
                Image.new("RGB", (12, 12), (brightness, brightness, 0)).save(root / split / name / f"{number}.jpg")
        (root / split / "cat" / "3.jpg").write_bytes(b"no picture")
    return root


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    root = tmp_path / "recordings"
    kind = [("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "?")]
    for split in ("train", "test"):
        for label, name in enumerate(("darker", "brighter")):
            (root / split / name).mkdir(parents=True)
            for number in range(12):
                events = np.zeros(100, kind)
                events["t"], events["x"], events["y"] = np.arange(100), np.arange(100) % 9 + number, np.arange(100) % 30
                events["p"] = label
                np.save(root / split / name / f"{number}.npy", events)
    return root


@pytest.mark.parametrize("name", ["digits", "digits_dvs"])
def test_show_writes_a_sheet_and_counts(name: str, tmp_path: Path, run_here) -> None:
    sheet = tmp_path / "sheet.png"
    text = run_here("data", "show", name, "--output", sheet, "--split", "test").stdout
    assert "in all   1295         143   359" in text
    assert f"wrote {sheet}" in text
    with Image.open(sheet) as image:
        assert min(image.size) > 500


def test_show_as_json(photographs: Path, tmp_path: Path, run) -> None:
    output = tmp_path / "sheet.webp"
    options = ("--data", photographs, "--output", output, "--columns", 3, "--json")
    shown = json.loads(run("data", "show", "image_folder", *options).stdout)
    assert shown["class_names"] == ["cat", "dog"]
    assert shown["samples_by_class"] == {"train": [18, 18], "validation": [2, 2], "test": [4, 4]}
    assert (shown["channels"], shown["size"], shown["events"]) == (3, [224, 224], False)
    assert Path(shown["sheet"]).is_file()


def test_show_events(recordings: Path, tmp_path: Path, run) -> None:
    options = ("--data", recordings, "--output", tmp_path / "a.png", "--columns", 5, "--json")
    shown = json.loads(run("data", "show", "event_folder", *options).stdout)
    assert shown["events"]
    assert shown["size"] == [34, 34]


def test_check_lists_every_bad_file(photographs: Path, run_here) -> None:
    text = run_here("data", "check", "image_folder", "--data", photographs, code=1).stdout
    assert shows(text, "train/cat/3.jpg", "JPEG", "val/cat/3.jpg")
    assert shows(text.splitlines()[-1], "image_folder", "2 of 48")
    only = run_here("data", "check", "image_folder", "--data", photographs, "--split", "test", "--json", code=1).stdout
    assert len(json.loads(only)["bad"]) == 1


def test_check_of_damaged_arrays(tmp_path: Path, run) -> None:
    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(bytes(3073) if number != 4 else b"short")
    (tmp_path / "test_batch.bin").write_bytes(b"")
    (tmp_path / "batches.meta.txt").write_text("\n".join("abcdefghij"))
    text = run("data", "check", "cifar10", "--data", tmp_path, code=1).stdout
    assert shows(text, "data_batch_4.bin", "5 bytes", "test_batch.bin", "0 bytes")
    assert shows(text.splitlines()[-1], "cifar10", 2)


def test_check_of_a_good_set(recordings: Path, run) -> None:
    for workers in (0, 2):
        text = run("data", "check", "event_folder", "--data", recordings, "--workers", workers).stdout
        (line,) = text.splitlines()
        assert shows(line, "event_folder", 48)


@pytest.mark.slow
def test_train_and_evaluate_on_a_folder_with_a_bad_file(photographs: Path, tmp_path: Path, run) -> None:
    options = ("--data-set", "image_folder", "--data", photographs, "--batch-size", 12, "--output", tmp_path / "run")
    trained = run("train", "spikformer_tiny_digits", *options, "--epochs", 6)
    assert trained.stderr.count("train/cat/3.jpg") == 1
    assert shows(trained.stdout, 6, "spikformer data check")
    weights = tmp_path / "run" / "last.safetensors"
    measured = json.loads(run("evaluate", weights, "--data", photographs, "--json").stdout)
    assert (measured["num_samples"], measured["unreadable"]) == (7, 1)
    assert measured["top1"] == 1.0, "dark or bright is no hard question"
    again = ("train", "spikformer_tiny_digits", *options, "--overwrite")
    for words in (("evaluate", weights, "--data", photographs), again):
        assert shows(run(*words, "--strict", code=2).stderr, "3.jpg")


@pytest.mark.slow
def test_train_on_a_folder_of_recordings(recordings: Path, tmp_path: Path, run, monkeypatch) -> None:
    monkeypatch.setenv("SPIKFORMER_CACHE", str(tmp_path / "cache"))
    options = ("--data-set", "event_folder", "--data", recordings, "--batch-size", 10, "--output", tmp_path / "run")
    *_, last = run("train", "spikformer_tiny_digits_dvs", *options, "--epochs", 40, "--json").stdout.splitlines()
    trained = json.loads(last)
    assert trained["last"]["test_accuracy"] == 1.0
    assert len(list((tmp_path / "cache" / "frames").glob("*.frames"))) == 22 + 2 + 24, "what was read is kept"


def test_mistakes(photographs: Path, tmp_path: Path, run_here) -> None:
    def mistake(*words: object) -> str:
        return run_here("data", *words, code=2).stderr

    assert shows(mistake("show", "cifar"), "'cifar'", "'cifar10'")
    assert shows(mistake("show", "image_folder"), "image_folder", "--data")
    folder = ("image_folder", "--data", photographs)
    assert shows(mistake("show", *folder, "--rows", 0), "--rows", 1, 1000, 0)
    assert shows(mistake("check", *folder, "--workers", -1), "--workers", 0, -1)
    assert shows(mistake("show", *folder, "--output", tmp_path / "sheet.doc"), tmp_path / "sheet.doc", ".png")
    assert shows(mistake("show", *folder, "--output", tmp_path / "none" / "sheet.png"), tmp_path / "none")
    assert shows(mistake("check", "image_folder", "--data", tmp_path / "none"), tmp_path / "none")
    assert not (tmp_path / "sheet.doc").exists()
