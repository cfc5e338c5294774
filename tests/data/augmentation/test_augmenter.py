"""A policy at work on batches: order, effect of every field, reproducibility, errors."""

import random as python_random
import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.mistakes import field_error
from torch import Tensor

from spikformer.data import DataSet, open_dataset
from spikformer.data.augmentation import CIFAR, CIFAR10_DVS, DVS128, IMAGENET, Augmentation, Augmenter, mirrored_in

EVERYTHING = replace(IMAGENET, operation_probability=0.9, mix_probability=0.9)
CHANGED: dict[str, Any] = {
    "flip": 1.0,
    "crop_scale": (0.1, 0.5),
    "color_jitter": 0.5,
    "operations": ("invert",),
    "num_operations": 3,
    "operation_probability": 0.1,
    "magnitude": 3.0,
    "magnitude_std": 3.0,
    "erase": 1.0,
    "mixup": 5.0,
    "cutmix": 5.0,
    "mix_probability": 0.0,
    "cutmix_share": 0.0,
    "label_smoothing": 0.3,
}


def unnormalised(data: DataSet) -> DataSet:
    return replace(data, preprocessing=replace(data.preprocessing, mean=None, std=None))


def batch(data: DataSet, count: int) -> tuple[Tensor, Tensor]:
    assert data.train is not None
    samples = np.stack([data.train[index] for index in range(count)])
    return torch.as_tensor(samples), torch.as_tensor(data.train.labels[:count])


def augment(policy: Augmentation, data: DataSet, count: int = 16, seed: int = 0, mix: bool = True) -> list[Tensor]:
    return list(Augmenter(policy, data)(*batch(data, count), np.random.default_rng(seed), mix=mix))


def test_without_a_policy_samples_are_only_prepared(event_set: DataSet) -> None:
    for data in (open_dataset("digits"), event_set):
        samples, labels = batch(data, 5)
        x, targets = Augmenter(Augmentation(), data)(samples, labels, np.random.default_rng(0))
        assert torch.equal(x, data.prepare(samples))
        assert torch.equal(targets, torch.eye(10)[labels])


ELSEWHERE = ("num_frames", "repeats", "alternate_flip")  # of events, of the loader, and by epoch


@pytest.mark.parametrize("field", [field.name for field in fields(Augmentation) if field.name not in ELSEWHERE])
def test_every_field_has_an_effect(field: str, colour_set: DataSet) -> None:
    # A batch is mixed in one way only: look at several.
    plain = [augment(EVERYTHING, colour_set, seed=seed) for seed in range(6)]
    changed = [augment(replace(EVERYTHING, **{field: CHANGED[field]}), colour_set, seed=seed) for seed in range(6)]
    which = 1 if field == "label_smoothing" else 0
    assert any(not torch.equal(one[which], other[which]) for one, other in zip(plain, changed, strict=True))


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
def test_mirror_images_come_as_often_as_asked(probability: float, colour_set: DataSet) -> None:
    samples, labels = batch(colour_set, 1)
    many, same = samples.repeat(2000, 1, 1, 1), labels.repeat(2000)
    x, _ = Augmenter(Augmentation(flip=probability), colour_set)(many, same, np.random.default_rng(0))
    prepared = colour_set.prepare(samples)
    mirrored = (x == prepared.flip(-1)).flatten(1).all(1)
    untouched = (x == prepared).flatten(1).all(1)
    assert (mirrored ^ untouched).all()
    assert mirrored.float().mean().item() == pytest.approx(probability, abs=0.03)
    # One after the other is independent: as many changes as a fair coin makes.
    changes = (mirrored[1:] != mirrored[:-1]).float().mean().item()
    assert changes == pytest.approx(2 * probability * (1 - probability), abs=0.04)


def test_alternating_mirror_images_are_seen_once_in_two_epochs(colour_set: DataSet) -> None:
    augmenter, plain = Augmenter(Augmentation(alternate_flip=True), colour_set), Augmentation()
    samples, labels = batch(colour_set, 16)
    indices = torch.arange(16)
    seen = []
    for epoch in range(2):
        turns = mirrored_in(epoch, indices, seed=3)
        x, _ = augmenter(samples, labels, np.random.default_rng(0), turns=turns)
        upright = augment(plain, colour_set)[0]
        assert torch.equal(x, torch.where(turns.view(-1, 1, 1, 1), upright.flip(-1), upright))
        seen.append(turns)
    assert torch.equal(seen[0], ~seen[1])
    many = mirrored_in(0, torch.arange(10_000), seed=0)
    assert many.float().mean().item() == pytest.approx(0.5, abs=0.02)
    assert not torch.equal(many, mirrored_in(0, torch.arange(10_000), seed=1))
    assert mirrored_in(0, torch.arange(10_000), seed=2**63 - 1).any()
    with field_error("turns"):
        augmenter(samples, labels, np.random.default_rng(0))
    with field_error("flip", "alternate_flip"):
        Augmentation(flip=0.5, alternate_flip=True)


def test_a_crop_of_the_whole_changes_nothing_and_a_small_one_is_enlarged(colour_set: DataSet) -> None:
    samples, _ = batch(colour_set, 8)
    ramp = torch.arange(32, dtype=torch.uint8).mul(8).expand(500, 3, 24, 32)
    plain = unnormalised(colour_set)

    def cropped(scale: tuple[float, float], x: Tensor) -> Tensor:
        labels = torch.zeros(len(x), dtype=torch.long)
        return Augmenter(Augmentation(crop_scale=scale), plain)(x, labels, np.random.default_rng(0))[0]

    assert torch.equal(cropped((1.0, 1.0), samples), plain.prepare(samples))
    spans = cropped((0.25, 0.25), ramp)[:, 0, 12].mul(255 / 8)  # of columns 0 to 31, which ones are seen
    widths = spans[:, -1] - spans[:, 0] + 1
    areas = (widths.mean() / 32) ** 2
    assert areas.item() == pytest.approx(0.25, abs=0.06)
    assert widths.min() < 0.25**0.5 * 32 < widths.max(), "between 3:4 and 4:3"
    assert (spans.diff(dim=1) >= 0).all(), "never mirrored"
    assert len(spans[:, 0].round().unique()) > 10, "anywhere"


def test_jitter_multiplies_brightness_by_up_to_its_strength(colour_set: DataSet) -> None:
    gray = torch.full((400, 3, 24, 32), 100, dtype=torch.uint8)  # has neither contrast nor colour to change
    augmenter = Augmenter(Augmentation(color_jitter=0.4), unnormalised(colour_set))
    x, _ = augmenter(gray, torch.zeros(400, dtype=torch.long), np.random.default_rng(0))
    factors = x.mean((1, 2, 3)) * 255 / 100
    assert 0.59 <= factors.min() < 0.62
    assert 1.38 < factors.max() <= 1.41
    assert factors.mean().item() == pytest.approx(1, abs=0.03)


def test_jitter_is_pillows_one_after_the_other(photographs: np.ndarray) -> None:
    from PIL import Image, ImageEnhance

    from spikformer.data.augmentation.operations import jitter_color

    changes, orders = np.array([[0.3, -0.4, 0.25], [-0.2, 0.35, -0.3]]), np.array([[0, 1, 2], [2, 0, 1]])
    found = jitter_color(torch.tensor(photographs).permute(0, 3, 1, 2), changes, orders).permute(0, 2, 3, 1)
    enhancements = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)
    for index, order in enumerate(orders):
        picture = Image.fromarray(photographs[index])
        for which in order:
            picture = enhancements[which](picture).enhance(1 + changes[index, which])
        difference = np.abs(found[index].numpy().astype(int) - np.asarray(picture).astype(int))
        assert difference.max() <= 4  # Pillow rounds down, and its gray is of integers
        assert difference.mean() < 1.5


def test_frames_are_chosen_in_order_and_for_the_whole_batch(event_set: DataSet) -> None:
    steps = event_set.preprocessing.time_steps
    assert steps is not None
    augmenter = Augmenter(Augmentation(num_frames=3), event_set)
    frames = torch.arange(steps).view(1, steps, 1, 1, 1).expand(5, steps, 2, 16, 16)
    seen = set()
    for seed in range(30):
        x, targets = augmenter(frames, torch.zeros(5, dtype=torch.long), np.random.default_rng(seed))
        assert x.shape == (3, 5, 2, 16, 16)
        assert targets.shape == (5, 10)
        assert (x == x[:, :1, :1, :1, :1]).all()
        chosen = x[:, 0, 0, 0, 0].tolist()
        assert chosen == sorted(set(chosen))
        seen.add(tuple(chosen))
    assert len(seen) > 10


@pytest.mark.parametrize("policy", [{"crop_scale": (0.5, 1.0)}, {"color_jitter": 0.4}, {"num_frames": 1000}], ids=str)
def test_what_does_not_suit_the_data_raises(policy: dict[str, Any], event_set: DataSet, colour_set: DataSet) -> None:
    with field_error(next(iter(policy))):
        Augmenter(Augmentation(**policy), event_set)
    if "num_frames" in policy:
        with field_error("num_frames"):
            Augmenter(Augmentation(**policy), colour_set)


def test_what_lies_outside_a_turned_image_is_the_mean_colour(colour_set: DataSet) -> None:
    policy = Augmentation(operations=("translate_x",), operation_probability=1.0, magnitude=10.0)
    x, _ = augment(policy, colour_set)
    band = torch.cat([x[..., :2], x[..., -2:]], -1).abs()
    half_a_level = 0.51 / 255 / 0.2
    assert (band.amax((1, 2)).amin(-1) < half_a_level).all()
    # Sets without a mean have gray.
    plain, _ = augment(policy, unnormalised(colour_set))
    ends = torch.stack([plain[..., 0], plain[..., -1]], -1)
    assert ((ends * 255).round() == 128).all((1, 2)).any(-1).all()


def test_without_mixing_targets_stay_smoothed(colour_set: DataSet) -> None:
    x, targets = augment(CIFAR, colour_set, mix=False)
    mixed, blended = augment(CIFAR, colour_set)
    unmixed, smoothed = augment(replace(CIFAR, mixup=0.0), colour_set)
    assert torch.equal(x, unmixed)
    assert torch.equal(targets, smoothed)
    assert targets.unique().tolist() == pytest.approx([0.025, 0.925])
    assert not torch.equal(x, mixed)
    assert not torch.equal(targets, blended)


def test_targets_say_what_part_of_the_pixels_cutmix_left(colour_set: DataSet) -> None:
    samples = torch.stack([torch.zeros(3, 24, 32), torch.full((3, 24, 32), 255)]).byte()
    augmenter = Augmenter(Augmentation(cutmix=1.0), colour_set)
    random = np.random.default_rng(0)
    for _ in range(20):
        x, targets = augmenter(samples, torch.tensor([0, 3]), random)
        bright = (x > 0).float().mean((1, 2, 3))
        assert torch.allclose(bright, targets[:, 3], atol=1e-6)


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("kind", ["images", "events"])
def test_shapes_hold_for_any_number_of_samples(kind: str, count: int, event_set: DataSet) -> None:
    gray = (replace(IMAGENET, flip=0.0), open_dataset("digits"))
    policy, data = gray if kind == "images" else (DVS128, event_set)
    samples, labels = batch(data, count)
    before = samples.clone()
    x, targets = Augmenter(policy, data)(samples, labels, np.random.default_rng(0))
    assert x.shape == data.prepare(samples).shape
    assert x.dtype == targets.dtype == torch.float32
    assert targets.shape == (count, 10)
    assert torch.allclose(targets.sum(1), torch.ones(count), atol=1e-6)
    assert torch.equal(samples, before)


@pytest.mark.parametrize("kind", ["images", "events"])
def test_a_seed_decides_everything_and_global_state_is_left_alone(
    kind: str, colour_set: DataSet, event_set: DataSet
) -> None:
    policy, data = (IMAGENET, colour_set) if kind == "images" else (DVS128, event_set)

    def states() -> tuple[str, str, list[int]]:
        return str(python_random.getstate()), str(np.random.get_state()), torch.get_rng_state().tolist()

    before = states()
    first = augment(policy, data, seed=3)
    assert states() == before
    torch.rand(5), np.random.rand(5), python_random.random()
    assert all(map(torch.equal, first, augment(policy, data, seed=3)))
    assert not torch.equal(first[0], augment(policy, data, seed=4)[0])


def test_a_generator_goes_on_where_it_was(colour_set: DataSet) -> None:
    augmenter, random = Augmenter(CIFAR, colour_set), np.random.default_rng(0)
    samples, labels = batch(colour_set, 8)
    augmenter(samples, labels, random)
    resumed = np.random.default_rng()
    resumed.bit_generator.state = random.bit_generator.state
    following = augmenter(samples, labels, random)
    assert all(map(torch.equal, following, augmenter(samples, labels, resumed)))


def test_mirror_images_raise_where_left_and_right_mean_something(event_set: DataSet) -> None:
    with field_error("flip", "digits_dvs", 0.5):
        Augmenter(CIFAR10_DVS, event_set)
    Augmenter(CIFAR10_DVS, replace(event_set, can_mirror=True))


def test_operations_on_colour_raise_for_events(event_set: DataSet) -> None:
    with field_error("operations", "digits_dvs", "'equalize'"):
        Augmenter(Augmentation(operations=("rotate", "equalize")), event_set)


def test_samples_of_another_form_raise(colour_set: DataSet, event_set: DataSet) -> None:
    random, labels = np.random.default_rng(0), torch.zeros(2, dtype=torch.long)
    with field_error("samples", "[B, C, H, W] of uint8", "[2, 3, 24, 32] of float32"):
        Augmenter(CIFAR, colour_set)(torch.zeros(2, 3, 24, 32), labels, random)
    with field_error("samples", "[B, T, 2, H, W]", "[2, 2, 16, 16]"):
        Augmenter(DVS128, event_set)(torch.zeros(2, 2, 16, 16), labels, random)


def test_a_policy_costs_no_import_of_kornia() -> None:
    code = "import sys, spikformer.data.augmentation; assert 'kornia' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
