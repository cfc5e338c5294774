"""The recipes are the paper's, number by number."""

from dataclasses import replace

import pytest
import torch
from tests.mistakes import mistake, unknown_name

from spikformer.data import list_datasets, open_dataset
from spikformer.data.images.sets import CIFAR_NORMALISATION, IMAGENET_NORMALISATION
from spikformer.errors import UnknownNameError
from spikformer.models import build_model
from spikformer.presets import get_preset, list_models
from spikformer.training import Recipe, get_recipe, list_recipes, recipes
from spikformer.training.recipes import recipe_summary

CIFAR_NAMES = [f"spikformer_{size}_{data}" for size in ("4_256", "2_384", "4_384") for data in ("cifar10", "cifar100")]
CIFAR_NAMES += [f"transformer_4_384_{data}" for data in ("cifar10", "cifar100")]
LONGER = [f"spikformer_4_384_{data}_400e" for data in ("cifar10", "cifar100")]
IMAGENET = [f"spikformer_{size}_imagenet" for size in ("4_384", "8_384", "6_512", "8_512", "10_512", "8_768")]
IMAGENET += ["transformer_8_512_imagenet"]
TRANSFER = [
    f"spikformer_{size}_{data}_transfer" for size in ("4_384", "8_384", "8_512") for data in ("cifar10", "cifar100")
]
EVENTS = ["spikformer_2_256_cifar10dvs", "spikformer_2_256_dvs128"]
OURS = [
    "spikformer_tiny_digits",
    "spikformer_tiny_digits_dvs",
    "spikformer_small_cifar10",
    "transformer_small_cifar10",
    "spikformer_small_events",
]

COLUMNS = (
    "epochs",
    "cooldown_epochs",
    "batch_size",
    "learning_rate",
    "final_learning_rate",
    "warmup_epochs",
    "warmup_learning_rate",
    "weight_decay",
    "mixing_epochs",
)
CIFAR_ROW = (300, 10, 128, 5e-4, 1e-5, 20, 1e-5, 0.06, 200)
IMAGENET_ROW = (300, 10, 256, 5e-4, 1e-5, 20, 1e-6, 0.05, None)
TABLE = {
    **dict.fromkeys(CIFAR_NAMES, CIFAR_ROW),
    **dict.fromkeys(LONGER, (400, *CIFAR_ROW[1:])),
    **dict.fromkeys(IMAGENET, IMAGENET_ROW),
    **dict.fromkeys(TRANSFER, (60, 0, *CIFAR_ROW[2:-1], None)),
    "spikformer_2_256_cifar10dvs": (96, 10, 16, 1e-3, 1e-5, 10, 1e-5, 0.06, 75),
    "spikformer_2_256_dvs128": (200, 0, 16, 1e-3, 1e-5, 10, 1e-5, 0.06, 75),
}
PAPER = list(TABLE)


def test_every_name_is_there_and_no_other() -> None:
    assert {name for name in list_recipes() if name.startswith(("spikformer_", "transformer_"))} == {*PAPER, *OURS}
    assert set(list_models()) <= set(list_recipes()), "every model can be trained"


@pytest.mark.parametrize("name", PAPER)
def test_numbers_are_those_of_the_table(name: str) -> None:
    recipe = get_recipe(name)
    assert {column: getattr(recipe, column) for column in COLUMNS} == dict(zip(COLUMNS, TABLE[name], strict=True))
    assert recipe.augmentation.label_smoothing == 0.1


@pytest.mark.parametrize("name", PAPER)
def test_the_paper_uses_none_of_our_extras(name: str) -> None:
    recipe, plain = get_recipe(name), Recipe()
    for extra in ("accumulate", "clip_gradient", "ema_decay", "precision", "sync_norms", "compile", "seed"):
        assert getattr(recipe, extra) == getattr(plain, extra), extra
    assert recipe.validation_share > 0, "the best epoch is not selected on the test set"


@pytest.mark.parametrize("name", [*CIFAR_NAMES, *LONGER, *TRANSFER])
def test_cifar_is_augmented_as_in_the_table(name: str) -> None:
    policy = get_recipe(name).augmentation
    assert (policy.mixup, policy.cutmix, policy.mix_probability) == (0.5, 0.0, 1.0)
    assert (policy.flip, policy.erase) == (0.5, 0.25)
    assert set(policy.operations) == {"equalize", "rotate", "shear_x", "translate_x", "translate_y"}
    assert (policy.num_operations, policy.magnitude, policy.magnitude_std) == (1, 9.0, 0.4)
    assert CIFAR_NORMALISATION == ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))


@pytest.mark.parametrize("name", IMAGENET)
def test_imagenet_is_augmented_as_in_the_table(name: str) -> None:
    policy = get_recipe(name).augmentation
    assert (policy.mixup, policy.cutmix, policy.mix_probability, policy.cutmix_share) == (0.8, 1.0, 1.0, 0.5)
    assert (policy.flip, policy.erase) == (0.5, 0.25)
    assert (policy.magnitude, policy.magnitude_std) == (9.0, 0.5)
    assert IMAGENET_NORMALISATION == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@pytest.mark.parametrize("name", EVENTS)
def test_events_are_augmented_as_in_the_table(name: str) -> None:
    policy = get_recipe(name).augmentation
    assert (policy.mixup, policy.cutmix, policy.mix_probability) == (0.5, 0.0, 0.5)
    assert policy.erase == 0
    assert policy.flip == (0.5 if "cifar10dvs" in name else 0.0), "a mirrored gesture is another gesture"
    assert set(policy.operations) == {"identity", "shear_x", "translate_x", "translate_y", "rotate", "cutout"}
    assert (policy.num_operations, policy.operation_probability, policy.magnitude) == (1, 1.0, None)


@pytest.mark.parametrize("name", list_recipes())
def test_every_model_builds_and_its_data_set_exists(name: str) -> None:
    recipe = get_recipe(name)
    with torch.device("meta"):
        model = build_model(recipe.model)
    assert sum(parameter.numel() for parameter in model.parameters()) > 10_000
    assert recipe.data_set in list_datasets()


@pytest.mark.parametrize("name", sorted(set(list_models()) & set(list_recipes())))
def test_a_recipe_called_as_a_model_trains_that_model_on_its_data(name: str) -> None:
    recipe = get_recipe(name)
    assert recipe.model == get_preset(name).config
    named = max((each for each in list_datasets() if name.endswith(each)), key=len, default="event_folder")
    assert recipe.data_set == named


@pytest.mark.parametrize("name", TRANSFER)
def test_transfer_is_the_imagenet_model_with_classes_of_cifar(name: str) -> None:
    recipe = get_recipe(name)
    size, data_set = name.removesuffix("_transfer").removeprefix("spikformer_").rsplit("_", 1)
    pretrained = get_preset(f"spikformer_{size}_imagenet").config
    assert recipe.model == pretrained.override(num_classes=100 if data_set == "cifar100" else 10)
    assert recipe.model.image_size == (224, 224)
    assert recipe.data_set == data_set


def test_400_epochs_differ_from_300_in_nothing_else() -> None:
    for data_set in ("cifar10", "cifar100"):
        base = get_recipe(f"spikformer_4_384_{data_set}")
        assert get_recipe(f"spikformer_4_384_{data_set}_400e") == replace(base, epochs=400)


@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "spikformer_tiny_digits_dvs"])
def test_the_embedded_sets_have_the_form_of_their_models(name: str) -> None:
    recipe = get_recipe(name)
    data = open_dataset(recipe.data_set)
    assert (data.channels, data.size) == (recipe.model.in_channels, recipe.model.image_size)
    assert len(data.class_names) == recipe.model.num_classes
    if data.events:
        assert len(data.split("test")[0]) == recipe.model.time_steps


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with mistake(UnknownNameError, kind="recipe", name="spikformer_4_384_cifar") as caught:
        get_recipe("spikformer_4_384_cifar")
    assert caught.value.suggestion in ("spikformer_4_384_cifar10", "spikformer_4_384_cifar100")
    with unknown_name("recipe", "resnet"):
        get_recipe("resnet")


def test_every_family_says_what_it_is() -> None:
    assert all(recipe_summary(name) for name in list_recipes())
    assert recipes.DEFAULT in list_recipes()
