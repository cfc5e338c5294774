"""What a policy accepts, what raises, and that the recipes are the published ones."""

from dataclasses import asdict, replace
from typing import Any

import pytest
from tests.mistakes import field_error, unknown_name

from spikformer.data.augmentation import CIFAR, CIFAR10_DVS, DVS128, IMAGENET, Augmentation
from spikformer.data.augmentation.policy import OPERATIONS


def test_a_misspelt_operation_is_answered_with_the_nearest_one() -> None:
    with unknown_name("operation", "sheer_x", suggestion="shear_x"):
        Augmentation(operations=("rotate", "sheer_x"))
    with unknown_name("operation", "TranslateX", suggestion="translate_x"):
        Augmentation(operations=("TranslateX",))
    with unknown_name("operation", "zzz", *OPERATIONS):
        Augmentation(operations=("zzz",))


def test_a_list_of_operations_becomes_a_tuple_and_a_bare_word_raises() -> None:
    assert Augmentation(operations=["rotate"]).operations == ("rotate",)
    with field_error("operations", "'rotate'"):
        Augmentation(operations="rotate")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("flip", 1.5),
        ("flip", True),
        ("erase", -0.1),
        ("label_smoothing", float("nan")),
        ("mix_probability", "half"),
        ("cutmix_share", 2),
        ("operation_probability", 7),
        ("magnitude", 11),
        ("magnitude_std", float("inf")),
        ("mixup", -1.0),
        ("cutmix", None),
        ("color_jitter", 1.5),
        ("repeats", 0),
        ("num_frames", 2.5),
        ("num_operations", 0),
        ("num_operations", 1.5),
    ],
)
def test_values_out_of_range_raise(field: str, value: Any) -> None:
    with field_error(field, repr(value)):
        replace(IMAGENET, **{field: value})


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("num_operations", {"num_operations": 2}),
        ("magnitude", {"magnitude": None}),
        ("mix_probability", {"mix_probability": 0.5}),
        ("cutmix_share", {"mixup": 0.5, "cutmix_share": 0.2}),
        ("magnitude_std", {"operations": ("rotate",), "magnitude": None, "magnitude_std": 0.5}),
    ],
)
def test_values_without_an_effect_raise(field: str, values: dict[str, Any]) -> None:
    with field_error(field, repr(values[field]), repr(getattr(Augmentation(), field))):
        Augmentation(**values)


@pytest.mark.parametrize("scale", [(0.5,), (0.0, 1.0), (0.9, 0.2), (0.5, 1.5), 0.5, ("a", "b"), (True, 2)])
def test_a_crop_is_two_shares_of_the_area(scale: Any) -> None:
    with field_error("crop_scale", repr(scale)):
        Augmentation(crop_scale=scale)
    assert Augmentation(crop_scale=[0.2, 1]).crop_scale == (0.2, 1.0)


def test_recipes_are_the_published_ones() -> None:
    assert asdict(CIFAR) == {
        "flip": 0.5,
        "alternate_flip": False,
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
