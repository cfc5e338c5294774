"""Events to frames: nothing lost, slices equal; pictures to crops, to the bit what torchvision gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.mistakes import field_error

from spikformer.sampling import Recording, evaluation_crop, evaluation_size, to_frames

pytestmark = pytest.mark.core


def recording(count: int, size: tuple[int, int] = (12, 16), seed: int = 0) -> Recording:
    random = np.random.default_rng(seed)
    height, width = size
    return Recording(
        np.sort(random.integers(0, 1_000_000, count)),
        random.integers(0, width, count).astype(np.int16),
        random.integers(0, height, count).astype(np.int16),
        random.random(count) < 0.5,
        size,
    )


def by_loop(events: Recording, num_frames: int, slicing: str) -> np.ndarray:
    """The definition, event by event."""
    frames = np.zeros((num_frames, 2, *events.size), np.float32)
    count, start, end = len(events.time_us), events.time_us[0], events.time_us[-1]
    for index in range(count):
        if slicing == "count":
            frame = min(index // max(count // num_frames, 1), num_frames - 1)
        else:
            frame = (int(events.time_us[index]) - int(start)) * num_frames // (int(end) - int(start) + 1)
        frames[frame, int(events.on[index]), events.y[index], events.x[index]] += 1
    return frames


@given(count=st.integers(1, 200), num_frames=st.integers(1, 20), slicing=st.sampled_from(["count", "time"]))
@settings(max_examples=60, deadline=None)
def test_frames_are_what_the_definition_says(count: int, num_frames: int, slicing: str) -> None:
    events = recording(count)
    frames = to_frames(events, num_frames, slicing=slicing)
    assert frames.dtype == np.uint8
    assert np.array_equal(frames, by_loop(events, num_frames, slicing))
    assert frames.sum() == count


TIMES = [0, 1, 2**62, 2**62 + 1, 2**63 - 1, -1, -(2**62), -(2**63), 10**6]


@given(st.lists(st.sampled_from(TIMES) | st.integers(-(2**63), 2**63 - 1), min_size=1).map(sorted), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_no_span_of_time_is_too_long(times: list[int], num_frames: int) -> None:
    events = recording(len(times))._replace(time_us=np.array(times, np.int64))
    assert np.array_equal(to_frames(events, num_frames, slicing="time"), by_loop(events, num_frames, "time"))


def test_slices_have_equal_counts_and_the_last_takes_the_rest() -> None:
    assert to_frames(recording(103), 10).sum((1, 2, 3)).tolist() == [10] * 9 + [13]


def test_off_is_channel_0_and_on_channel_1() -> None:
    one = Recording(np.array([5]), np.array([3], np.int16), np.array([7], np.int16), np.array([True]), (12, 16))
    frames = to_frames(one, 1)
    assert np.argwhere(frames).tolist() == [[0, 1, 7, 3]]


def test_resizing_keeps_every_event_and_cropping_the_middle() -> None:
    events = recording(500, size=(128, 128))
    small = to_frames(events, 4, size=(64, 32))
    assert small.shape == (4, 2, 64, 32)
    assert small.sum() == 500
    whole = to_frames(events, 4)
    assert np.array_equal(small, whole.reshape(4, 2, 64, 2, 32, 4).sum((3, 5)))
    assert np.array_equal(to_frames(events, 4, size=(64, 32), fit="crop"), whole[:, :, 32:96, 48:80])


def test_wrong_use() -> None:
    with field_error("num_frames", 0):
        to_frames(recording(5), 0)
    with field_error("fit", "12×16", "16×16"):
        to_frames(recording(5), 1, size=(16, 16), fit="crop")


def photograph(height: int, width: int) -> np.ndarray:
    coarse = np.random.default_rng(0).integers(0, 256, (7, 9, 3), np.uint8)
    return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)).transpose(2, 0, 1)


def in_two_steps(image: np.ndarray, size: int, ratio: float) -> np.ndarray:
    """What torchvision does: Resize(short side) and CenterCrop, as evaluation scripts have them."""
    height, width = image.shape[1:]
    short = int(size / ratio)
    resized = (short, int(short * width / height)) if height <= width else (int(short * height / width), short)
    whole = Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))
    whole = whole.resize(resized[::-1], Image.Resampling.BICUBIC)
    top, left = round((resized[0] - size) / 2), round((resized[1] - size) / 2)
    return np.asarray(whole.crop((left, top, left + size, top + size))).transpose(2, 0, 1)


@pytest.mark.parametrize("shape", [(375, 500), (500, 333), (224, 224), (100, 130), (901, 77), (256, 341)])
@pytest.mark.parametrize(("size", "ratio"), [(224, 0.875), (224, 0.9), (224, 1.0), (32, 0.5), (31, 0.9)])
def test_it_equals_resizing_and_then_cropping(shape, size: int, ratio: float) -> None:
    image = photograph(*shape)
    expected = in_two_steps(image, size, ratio)
    np.testing.assert_array_equal(evaluation_crop(image, (size, size), ratio), expected)


@given(*[st.integers(1, 60)] * 4, st.floats(0.3, 1))
@settings(max_examples=200, deadline=None)
def test_any_picture_gives_the_size_asked_for(height: int, width: int, rows: int, columns: int, ratio: float) -> None:
    assert evaluation_crop(photograph(rows, columns), (height, width), ratio).shape == (3, height, width)


@pytest.mark.parametrize("shape", [(3, 1, 100_001), (3, 100_001, 1)])
def test_a_ribbon_is_no_burden_and_shows_its_middle(shape) -> None:
    ribbon = np.zeros(shape, np.uint8)
    ribbon.reshape(3, -1)[:, 50_000] = 200
    crop = evaluation_crop(ribbon, (224, 224), 0.875)
    assert crop.shape == (3, 224, 224)
    assert crop[:, 112, 112].tolist() == [200] * 3


def test_ratio_and_size_have_an_effect_and_bounds() -> None:
    assert evaluation_size((224, 112), 0.875) == (256, 128)
    image = photograph(60, 80)
    assert (evaluation_crop(image, (32, 32), 0.5) != evaluation_crop(image, (32, 32), 1.0)).any()
    for ratio in (0, -1, 1.01, float("nan")):
        with field_error("ratio", ratio):
            evaluation_crop(image, (32, 32), ratio)
    with field_error("size", (0, 32)):
        evaluation_crop(image, (0, 32), 1.0)
