"""The simulated event camera: still scenes are silent, edges fire by their sign, everything is seeded."""

from pathlib import Path

import numpy as np
import pytest
from tests.mistakes import field_error

from spikformer.data.embedded import EventCamera
from spikformer.data.events.formats import check

QUIET = EventCamera(noise_hz=0.0, threshold_spread=0.0)


def bar() -> np.ndarray:
    """A bright vertical bar on black, at the sensor's own resolution."""
    image = np.zeros((1, 16, 16))
    image[:, :, 6:10] = 1
    return image


def test_recordings_are_recordings() -> None:
    images = np.random.default_rng(0).random((3, 8, 8))
    for recording in EventCamera().watch(images):
        check(recording, Path("simulated"))
        assert recording.time_us[-1] <= 3 * 100_000
        assert recording.size == (16, 16)


def test_nothing_moves_nothing_fires_but_noise() -> None:
    dark = np.zeros((1, 8, 8))
    assert len(QUIET.watch(np.concatenate([dark, bar()[:, ::2, ::2]]))[0].time_us) == 0
    noisy = EventCamera(noise_hz=100.0).watch(dark)[0]
    expected = 100 * 16 * 16 * 0.3
    assert len(noisy.time_us) == pytest.approx(expected, rel=0.1)


def test_the_same_seed_gives_the_same_events() -> None:
    first, again, other = (EventCamera().watch(bar(), seed)[0] for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first[:4], again[:4], strict=True))
    assert not np.array_equal(first.time_us, other.time_us)


def test_an_image_does_not_depend_on_the_others() -> None:
    both = QUIET.watch(np.concatenate([bar(), bar()[:, :, ::-1]]))
    alone = QUIET.watch(bar())[0]
    assert all(np.array_equal(a, b) for a, b in zip(both[0][:4], alone[:4], strict=True))


def test_edges_fire_by_the_sign_of_their_motion() -> None:
    """In the second saccade the bar moves left: its left side turns bright, its right side dark."""
    recording = QUIET.watch(bar())[0]
    second = (recording.time_us > 100_000) & (recording.time_us <= 200_000)
    left, right = second & (recording.x < 7), second & (recording.x >= 9)
    assert recording.on[left].mean() > 0.9
    assert recording.on[right].mean() < 0.1


def test_a_pixel_fires_as_often_as_its_change_has_thresholds() -> None:
    """Over a whole excursion, ON minus OFF events times θ is the change of log brightness, to within one θ."""
    camera = QUIET
    recording = camera.watch(bar())[0]
    path = camera.path()
    half = len(path) // 2
    change = camera._log_brightness(bar(), path[half])[0] - camera._log_brightness(bar(), path[0])[0]
    early = recording.time_us <= half * camera.step_us
    net = np.zeros((16, 16))
    np.add.at(net, (recording.y[early], recording.x[early]), np.where(recording.on[early], 1, -1))
    assert np.abs(net * camera.threshold - change).max() <= camera.threshold + 1e-12
    assert np.abs(net).max() >= 6, "and there was a change to follow"


@pytest.mark.parametrize("images", [np.zeros((8, 8)), np.full((1, 8, 8), 2.0), np.full((1, 8, 8), np.nan)])
def test_wrong_images_are_rejected(images: np.ndarray) -> None:
    with field_error("images", list(images.shape)):
        EventCamera().watch(images)
