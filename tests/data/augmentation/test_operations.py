"""Drawing operations, and doing each on its samples only."""

import numpy as np
import pytest
import torch
from PIL import Image

from spikformer.data import DataSet
from spikformer.data.augmentation import CIFAR10_DVS, IMAGENET, Augmentation
from spikformer.data.augmentation.operations import apply_operations, draw_operations
from spikformer.data.augmentation.policy import COLOUR, GEOMETRIC, OPERATIONS

FRAME_OPERATIONS = tuple(name for name in OPERATIONS if name not in COLOUR)


def apply(x: torch.Tensor, *names: str, strength: float = 0.9, fill: float = 0.0) -> torch.Tensor:
    return apply_operations(x, np.array(names), np.full(len(names), strength), np.random.default_rng(0), fill=fill)


def test_operations_are_drawn_alike_and_done_as_often_as_asked() -> None:
    names, _ = draw_operations(IMAGENET, 30000, np.random.default_rng(0))
    shares = {name: (names == name).mean() for name in (*IMAGENET.operations, "identity")}
    assert shares.pop("identity") == pytest.approx(0.5, abs=0.01)
    assert max(abs(share - 0.5 / 15) for share in shares.values()) < 0.005
    always, _ = draw_operations(CIFAR10_DVS, 30000, np.random.default_rng(0))
    assert (always == "identity").mean() == pytest.approx(1 / 6, abs=0.01)


def test_magnitudes_are_normal_cut_at_the_ends_or_uniform() -> None:
    _, strengths = draw_operations(IMAGENET, 30000, np.random.default_rng(0))
    sizes = np.abs(strengths) * 10
    assert (strengths < 0).mean() == pytest.approx(0.5, abs=0.01)
    assert np.median(sizes) == pytest.approx(9, abs=0.02)
    assert np.percentile(sizes, [16, 84]) == pytest.approx([8.5, 9.5], abs=0.03)
    assert sizes.max() == 10
    assert (sizes == 10).mean() == pytest.approx(0.023, abs=0.004)
    _, fixed = draw_operations(Augmentation(operations=("rotate",), magnitude=4.0), 100, np.random.default_rng(0))
    assert set(np.abs(fixed)) == {0.4}
    _, uniform = draw_operations(CIFAR10_DVS, 30000, np.random.default_rng(0))
    assert np.quantile(uniform, [0.1, 0.25, 0.5, 0.75, 0.9]) == pytest.approx([-0.8, -0.5, 0, 0.5, 0.8], abs=0.02)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_changes_its_own_sample_only(name: str, colour_set: DataSet) -> None:
    x = torch.as_tensor(colour_set.train.arrays[:3])
    before = x.clone()
    changed = apply(x, "identity", name, "identity", fill=255.0)
    assert torch.equal(x, before)
    assert torch.equal(changed[[0, 2]], x[[0, 2]])
    assert torch.equal(changed[1], x[1]) == (name == "identity")
    assert changed.dtype == torch.uint8


def test_images_are_turned_with_cubic_interpolation_and_rounded_to_bytes(photographs: np.ndarray) -> None:
    turned = apply(torch.as_tensor(photographs).permute(0, 3, 1, 2), "rotate", "rotate")
    for ours, photograph in zip(turned.permute(0, 2, 3, 1).numpy(), photographs, strict=True):
        pillow = Image.fromarray(photograph).rotate(-27, Image.Resampling.BICUBIC)
        assert np.abs(ours.astype(float) - np.asarray(pillow)).mean() < 1.5


def test_doing_all_at_once_is_doing_one_at_a_time(colour_set: DataSet) -> None:
    names = [name for name in OPERATIONS if name != "cutout"]
    x = torch.as_tensor(colour_set.train.arrays[: len(names)])
    together = apply(x, *names, fill=99.0)
    for sample, name in enumerate(names):
        alone = apply(x[[sample]], name, fill=99.0)
        assert torch.equal(together[[sample]], alone), name


@pytest.mark.parametrize("name", ["identity", *GEOMETRIC])
def test_without_strength_pictures_and_frames_are_bit_equal(name: str, colour_set: DataSet, event_set: DataSet) -> None:
    x = torch.as_tensor(colour_set.train.arrays[:1])
    assert torch.equal(apply(x, name, strength=0.0), x)
    frames = torch.as_tensor(event_set.train[0]).float().flatten(0, 1)[None]
    assert torch.equal(apply(frames, name, strength=0.0), frames)


@pytest.mark.parametrize("name", OPERATIONS)
def test_gray_pictures_may_have_every_operation(name: str, colour_set: DataSet) -> None:
    x = torch.as_tensor(colour_set.train.arrays[:4, :1])
    changed = apply(x, *[name] * 4, fill=77.0)
    assert changed.shape == x.shape
    # Gray has no colour to take out, and Pillow leaves it alone, too.
    assert torch.equal(changed, x) == (name in ("identity", "color"))


@pytest.mark.parametrize("name", FRAME_OPERATIONS)
@pytest.mark.parametrize("strength", [0.35, -1.0])
def test_counts_stay_whole_and_all_frames_of_a_sample_meet_the_same_fate(name: str, strength: float) -> None:
    random = np.random.default_rng(0)
    frame = torch.as_tensor(random.poisson(2.0, (1, 1, 16, 16))).float()
    # Frames that are multiples of each other remain so only if every pixel takes the same way.
    x = torch.cat([frame, 2 * frame, 3 * frame], 1)
    changed = apply(x, name, strength=strength)
    assert torch.equal(changed[:, 1], 2 * changed[:, 0])
    assert torch.equal(changed[:, 2], 3 * changed[:, 0])
    assert set(changed[:, 0].unique().tolist()) <= {0.0, *frame.unique().tolist()}
    assert torch.equal(changed, x) == (name == "identity")


def test_cutout_takes_squares_of_a_thousandth_to_a_ninth() -> None:
    x = torch.ones(2000, 1, 64, 64)
    strengths = np.random.default_rng(1).uniform(-1, 1, 2000)
    cut = apply_operations(x, np.array(["cutout"] * 2000), strengths, np.random.default_rng(0))
    gone = 1 - cut.mean((1, 2, 3)).numpy()
    assert 0 < gone.min() <= 0.002
    assert 0.10 < gone.max() <= 0.115
    assert np.corrcoef(gone, np.abs(strengths))[0, 1] > 0.99
    sides = (1 - cut[:, 0]).amax(2).sum(1), (1 - cut[:, 0]).amax(1).sum(1)
    assert torch.equal(*sides)
