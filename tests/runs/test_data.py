"""A data set looked at, as functions: its sheet, its counts, its check."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.mistakes import field_error

from spikformer.runs.data import check_data, describe_data, show_data


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Three cats and three dogs a split; a cat of the test split is damaged."""
    root = tmp_path / "photographs"
    for split in ("train", "test"):
        for name, brightness in (("cat", 30), ("dog", 220)):
            (root / split / name).mkdir(parents=True)
            for number in range(3):
                Image.new("RGB", (12, 12), (brightness, brightness, 0)).save(root / split / name / f"{number}.png")
    (root / "test" / "cat" / "1.png").write_bytes(b"no picture")
    return root


def test_a_sheet_and_its_set(photographs: Path, tmp_path: Path) -> None:
    data, sheet = show_data("image_folder", photographs, split="test", output=tmp_path / "sheet.png", columns=2)
    assert sheet == tmp_path / "sheet.png"
    with Image.open(sheet) as picture:
        assert len(np.unique(np.asarray(picture.convert("L")))) > 10, "something is drawn"
    described = describe_data(data)
    assert described["class_names"] == ("cat", "dog")
    assert described["samples_by_class"]["test"] == [3, 3]
    with field_error("rows", 0, 1000):
        show_data("digits", rows=0)


def test_a_check_counts_what_cannot_be_read(photographs: Path) -> None:
    seen = []
    found = check_data("image_folder", photographs, workers=0, on_samples=lambda *now: seen.append(now))
    assert found.data is not None
    assert (found.num_unreadable, found.num_samples, found.splits) == (1, 12, tuple(found.data.splits))
    assert len(found.bad) == 1
    assert str(Path("test", "cat", "1.png")) in found.bad[0]
    assert seen[-1] == ("test", 6, 6)
    with field_error("workers", -1):
        check_data("digits", workers=-1)


def test_a_check_of_files_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "test_batch.bin").write_bytes(b"")
    for number in range(1, 6):
        (tmp_path / f"data_batch_{number}.bin").write_bytes(bytes(3073))
    (tmp_path / "batches.meta.txt").write_text("\n".join("abcdefghij"))
    found = check_data("cifar10", tmp_path)
    assert found.data is None
    assert found.num_unreadable == len(found.bad) == 1
