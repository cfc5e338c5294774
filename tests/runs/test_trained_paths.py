"""Where weights are looked for: a run folder, best before last, and what is said of a path without any."""

from pathlib import Path

import pytest

from spikformer.runs.trained import weights_path


def test_of_a_run_the_best_come_before_the_last(tmp_path: Path) -> None:
    for name in ("last.safetensors", "best.safetensors"):
        (tmp_path / name).touch()
        assert weights_path(tmp_path) == tmp_path / name
    assert weights_path(tmp_path / "last.safetensors") == tmp_path / "last.safetensors"


def test_a_path_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        weights_path(tmp_path / "nosuch")
    assert str(tmp_path / "nosuch") in str(missing.value)
    with pytest.raises(IsADirectoryError) as empty:
        weights_path(tmp_path)
    assert "--resume" not in str(empty.value)
    (tmp_path / "state.safetensors").touch()
    with pytest.raises(IsADirectoryError) as young:
        weights_path(tmp_path)
    assert f"--resume --output {tmp_path}" in str(young.value)
