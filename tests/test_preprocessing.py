"""From decoded pictures and recordings to a network's input, in NumPy, to the bit what training computes in PyTorch."""

import numpy as np
import pytest
import torch
from tests.mistakes import field_error, file_error

from spikformer.data import DataSet
from spikformer.preprocessing import Preprocessing
from spikformer.sampling import Recording, to_frames

pytestmark = pytest.mark.core

IMAGES = Preprocessing(kind="image", size=(12, 8), channels=3, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
FRAMES = Preprocessing(kind="events", size=(8, 8), channels=2, time_steps=3, sensor=(16, 32))


def recording(size: tuple[int, int] = (8, 8), *, guessed: bool = True) -> Recording:
    random = np.random.default_rng(0)
    x, y = (random.integers(0, side, 50).astype(np.int16) for side in (size[1], size[0]))
    return Recording(np.arange(50), x, y, random.random(50) < 0.5, size, guessed)


@pytest.mark.parametrize(
    "seen",
    [
        IMAGES,
        Preprocessing(kind="image", size=(12, 8), channels=1),
        Preprocessing(kind="image", size=(12, 8), channels=3, mean=(0.1307,), std=(0.3081,)),
        FRAMES,
    ],
)
def test_inputs_are_to_the_bit_those_of_training(seen: Preprocessing) -> None:
    samples = np.random.default_rng(0).integers(0, 256, (5, *seen.sample_shape)).astype(np.uint8)
    data = DataSet("noise", ("a",), seen, None, None, None)
    inputs = seen.to_inputs(samples)
    assert inputs.dtype == np.float32
    assert inputs.flags.c_contiguous
    assert torch.equal(data.prepare(samples), torch.from_numpy(inputs))
    assert inputs.shape == ((3, 5, 2, 8, 8) if seen.events else (5, seen.channels, 12, 8))


def test_gray_and_colour() -> None:
    gray = np.random.default_rng(0).integers(0, 256, (1, 12, 8)).astype(np.uint8)
    colour = IMAGES.to_sample(gray)
    assert np.array_equal(colour, np.repeat(gray, 3, 0))
    assert np.array_equal(Preprocessing(kind="image", size=(12, 8), channels=1).to_sample(colour), gray)
    with field_error("channels", 3, 4):
        IMAGES.to_sample(np.zeros((4, 12, 8), np.uint8))


@pytest.mark.parametrize("resampling", ["bicubic", "bilinear", "nearest"])
def test_resampling(resampling: str) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (3, 31, 40)).astype(np.uint8)
    seen = Preprocessing(kind="image", size=(12, 8), channels=3, resampling=resampling)
    sample = seen.to_sample(picture)
    assert (sample.shape, sample.dtype) == ((3, 12, 8), np.uint8)
    assert np.isin(sample, picture).all() or resampling != "nearest"


def test_the_sensor_of_the_set_is_for_recordings_that_state_none() -> None:
    events = recording()
    expected = to_frames(events._replace(size=(16, 32)), 3, size=(8, 8))
    assert np.array_equal(FRAMES.to_sample(events), expected)
    stated = recording(guessed=False)
    assert np.array_equal(FRAMES.to_sample(stated), to_frames(stated, 3))
    with file_error("file.aedat", "unfit", 63, "16×32"):
        FRAMES.to_sample(recording((64, 64)), "file.aedat")


def test_what_is_neither_picture_nor_recording_is_an_error() -> None:
    for source in (np.zeros((3, 4, 4)), np.zeros((4, 4), np.uint8), np.zeros((3, 0, 4), np.uint8), recording()):
        with field_error("source"):
            IMAGES.to_sample(source)
    with field_error("source"):
        FRAMES.to_sample(np.zeros((3, 4, 4), np.uint8))
    empty = recording()._replace(**{name: np.empty(0, np.int16) for name in ("time_us", "x", "y", "on")})
    with file_error("a.bin", "empty"):
        FRAMES.to_sample(empty, "a.bin")
    with field_error("samples", "[3, 12, 8]"):
        IMAGES.to_inputs(np.zeros((3, 12, 8), np.uint8))
