"""Speed: percentiles of calls, and a run's own data where none is given."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.mistakes import field_error

import spikformer as sf
from spikformer.analysis.specimens import specimen
from spikformer.data import open_dataset
from spikformer.presets import get_preset
from spikformer.runs.bench import bench, speed_of, time_calls
from spikformer.runs.folder import Description
from spikformer.runs.writer import RunWriter


def test_speed_is_that_of_the_fastest_call() -> None:
    speed = speed_of(8, [4.0, 2.0, 10.0])
    assert (speed.fastest_ms, speed.median_ms, speed.calls) == (2.0, 4.0, 3)
    assert speed.images_per_second == pytest.approx(4000)


def test_calls_are_made_however_long_they_take() -> None:
    made = []
    assert len(time_calls(lambda: made.append(1), 0.0, fewest=3)) == len(made) >= 3


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run on a folder of pictures."""
    for split in ("train", "test"):
        for label, name in enumerate(("cat", "dog")):
            folder = tmp_path / "pictures" / split / name
            folder.mkdir(parents=True)
            for number in range(2):
                Image.new("RGB", (8, 8), (100 * label + 10 * number, 50, 0)).save(folder / f"{number}.png")
    config = get_preset("spikformer_tiny_digits").config.override(in_channels=3, num_classes=2)
    model = specimen(config, torch.float32)
    model.card = open_dataset("image_folder", tmp_path / "pictures", size=(8, 8)).card("spikformer")
    writer = RunWriter(tmp_path / "run")
    writer.path.mkdir()
    sf.save(model, writer.best)
    writer.write_description(Description("custom", str(tmp_path / "pictures"), ["cat", "dog"], 4, None, {}))
    return writer.path


def test_the_runs_own_data_is_the_default(run: Path) -> None:
    found = bench(run, batch_sizes=(1, 2), threads=1, seconds=0.01)
    assert [speed.batch_size for speed in found.speeds] == [1, 2]
    assert (found.how, found.num_threads, found.density_thresholds, found.layers) == ("PyTorch", 1, None, [])
    assert np.isfinite([speed.images_per_second for speed in found.speeds]).all()


@pytest.mark.parametrize(
    "wrong", [{"batch_sizes": ()}, {"batch_sizes": (0,)}, {"seconds": 0}, {"threads": 0}, {"batch_sizes": (100,)}]
)
def test_wrong_options(wrong: dict[str, object], run: Path) -> None:
    with field_error(next(iter(wrong))):
        bench(run, **wrong)
