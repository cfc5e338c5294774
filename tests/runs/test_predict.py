"""Predictions for many files: folders are expanded, progress is reported, and an unreadable file does not stop it."""

from pathlib import Path

from PIL import Image

import spikformer as sf
from spikformer.runs.predict import answer_files, expand_folders


def test_each_file_is_reported_when_it_is_answered(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    Image.new("L", (8, 8), 200).save(tmp_path / "photos" / "a.png")
    (tmp_path / "photos" / "b.png").write_bytes(b"no picture")
    files = expand_folders([tmp_path / "photos", tmp_path / "missing.png"])
    assert files == [tmp_path / "photos" / "a.png", tmp_path / "photos" / "b.png", tmp_path / "missing.png"]
    done: list[int] = []
    answers = answer_files(sf.load("digits"), files, top=2, on_file=done.append)
    assert done == [1, 1, 1]
    assert [answer.error is None for answer in answers] == [True, False, False]
