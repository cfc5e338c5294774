"""Saving: a whole picture or none, and a sentence why."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spikformer.visualise.saving import save_picture

PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8))


@pytest.mark.parametrize(("ending", "kind"), [(".png", "PNG"), (".PNG", "PNG"), (".webp", "WEBP"), (".jpeg", "JPEG")])
def test_the_ending_says_the_format(tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"sheet{ending}"
    save_picture(PICTURE, path)
    with Image.open(path) as image:
        assert image.format == kind
        assert image.size == PICTURE.size
        if kind != "JPEG":
            assert np.array_equal(np.asarray(image), np.asarray(PICTURE))
    assert os.listdir(tmp_path) == [path.name]


def test_a_name_as_long_as_is_allowed_is_fine_and_an_older_picture_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251 + ".png")
    save_picture(Image.new("RGB", (5, 5)), path)
    save_picture(PICTURE, path)
    with Image.open(path) as image:
        assert image.size == PICTURE.size


def test_wrong_use(tmp_path: Path) -> None:
    for name in ("sheet", "sheet.pdf"):
        with pytest.raises(ValueError, match=rf"{name} should end in one of \.png, \.jpg, \.jpeg, \.webp"):
            save_picture(PICTURE, tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"There is no folder .*none to write sheet\.png into; create it first"):
        save_picture(PICTURE, tmp_path / "none" / "sheet.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.png is a folder; give the name of a file"):
        save_picture(PICTURE, tmp_path / "folder.png")
    with pytest.raises(OSError, match=r"png cannot be written: File name too long"):
        save_picture(PICTURE, tmp_path / ("n" * 300 + ".png"))
    with pytest.raises(ValueError, match=r"\.webp cannot hold a picture of 17000×1 pixels .*; try \.png"):
        save_picture(Image.new("RGB", (17_000, 1)), tmp_path / "long.webp")
    assert os.listdir(tmp_path) == ["folder.png"]
