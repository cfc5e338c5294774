"""What a policy accepts, what it refuses, and that the recipes are the published ones."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from spikformer.data.augmentation import CIFAR, CIFAR10_DVS, DVS128, IMAGENET, Augmentation
from spikformer.data.augmentation.policy import OPERATIONS


def test_a_misspelt_operation_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"There is no operation 'sheer_x'; did you mean 'shear_x'\?"):
        Augmentation(operations=("rotate", "sheer_x"))
    with pytest.raises(ValueError, match=r"There is no operation 'TranslateX'; did you mean 'translate_x'\?"):
        Augmentation(operations=("TranslateX",))
    with pytest.raises(ValueError, match=r"no operation 'zzz'; choose from identity, cutout, rotate"):
        Augmentation(operations=("zzz",))


def test_a_list_of_operations_becomes_a_tuple_and_a_bare_word_is_refused() -> None:
    assert Augmentation(operations=["rotate"]).operations == ("rotate",)
    with pytest.raises(ValueError, match="got 'rotate'"):
        Augmentation(operations="rotate")


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("flip", 1.5, "flip must be between 0 and 1, got 1.5."),
        ("flip", True, "flip must be between 0 and 1, got True."),
        ("erase", -0.1, "erase must be between 0 and 1, got -0.1."),
        ("label_smoothing", float("nan"), "label_smoothing must be between 0 and 1, got nan."),
        ("mix_probability", "half", "mix_probability must be between 0 and 1, got 'half'."),
        ("cutmix_share", 2, "cutmix_share must be between 0 and 1, got 2."),
        ("operation_probability", 7, "operation_probability must be between 0 and 1, got 7."),
        ("magnitude", 11, "magnitude must be between 0 and 10, got 11."),
        ("magnitude_std", float("inf"), "magnitude_std must be finite and at least 0, got inf."),
        ("mixup", -1.0, "mixup must be finite and at least 0, got -1.0."),
        ("cutmix", None, "cutmix must be finite and at least 0, got None."),
        ("color_jitter", 1.5, "color_jitter must be between 0 and 1, got 1.5."),
        ("repeats", 0, "repeats must be an integer of at least 1, got 0."),
        ("num_frames", 2.5, "num_frames must be an integer of at least 1, got 2.5."),
        ("num_operations", 0, "num_operations must be an integer of at least 1, got 0."),
        ("num_operations", 1.5, "num_operations must be an integer of at least 1, got 1.5."),
    ],
)
def test_values_out_of_range_are_refused_in_one_sentence(field: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="must be") as refusal:
        replace(IMAGENET, **{field: value})
    assert str(refusal.value) == sentence


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"num_operations": 2}, "num_operations has no effect without operations, got 2; leave it 1."),
        ({"magnitude": None}, "magnitude has no effect without operations, got None; leave it 9.0."),
        ({"mix_probability": 0.5}, "mix_probability has no effect without mixup or cutmix, got 0.5; leave it 1.0."),
        (
            {"mixup": 0.5, "cutmix_share": 0.2},
            "cutmix_share has no effect unless mixup and cutmix are both on, got 0.2; leave it 0.5.",
        ),
        (
            {"operations": ("rotate",), "magnitude": None, "magnitude_std": 0.5},
            "magnitude_std has no effect where magnitude is None, got 0.5; leave it 0.0.",
        ),
    ],
)
def test_values_without_an_effect_are_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="has no effect") as refusal:
        Augmentation(**values)
    assert str(refusal.value) == sentence


@pytest.mark.parametrize("scale", [(0.5,), (0.0, 1.0), (0.9, 0.2), (0.5, 1.5), 0.5, ("a", "b"), (True, 2)])
def test_a_crop_is_two_shares_of_the_area(scale: Any) -> None:
    with pytest.raises(ValueError, match="crop_scale"):
        Augmentation(crop_scale=scale)
    assert Augmentation(crop_scale=[0.2, 1]).crop_scale == (0.2, 1.0)


def test_recipes_are_the_published_ones() -> None:
    assert asdict(CIFAR) == {
        "flip": 0.5,
        "crop_scale": None,
        "color_jitter": 0.0,
        "num_frames": None,
        "repeats": 1,
        "operations": ("equalize", "rotate", "shear_x", "translate_x", "translate_y"),
        "num_operations": 1,
        "operation_probability": 0.5,
        "magnitude": 9.0,
        "magnitude_std": 0.4,
        "erase": 0.25,
        "mixup": 0.5,
        "cutmix": 0.0,
        "mix_probability": 1.0,
        "cutmix_share": 0.5,
        "label_smoothing": 0.1,
    }
    assert set(IMAGENET.operations) == set(OPERATIONS) - {"identity", "cutout"}
    assert len(IMAGENET.operations) == 15
    everything_but = replace(IMAGENET, operations=CIFAR.operations)
    published = {"num_operations": 2, "magnitude_std": 0.5, "mixup": 0.8, "cutmix": 1.0}
    assert everything_but == replace(CIFAR, **published)
    assert CIFAR10_DVS.operations == ("identity", "shear_x", "translate_x", "translate_y", "rotate", "cutout")
    assert (CIFAR10_DVS.operation_probability, CIFAR10_DVS.magnitude) == (1.0, None)
    assert (CIFAR10_DVS.mixup, CIFAR10_DVS.mix_probability, CIFAR10_DVS.erase) == (0.5, 0.5, 0.0)
    assert replace(CIFAR10_DVS, flip=0.0) == DVS128
    assert CIFAR10_DVS.flip == 0.5
