"""The successors' recipes are their authors', number by number, as FAMILY's paragraphs have them."""

from typing import Any

import pytest

from spikformer.data.augmentation import CIFAR, CIFAR10_DVS, DVS128, IMAGENET
from spikformer.presets import list_models
from spikformer.training import get_recipe

RANDAUGMENT = set(IMAGENET.operations)
SDT = "spike_driven_transformer"


def check(name: str, **expected: Any) -> None:
    """Settings of a recipe; names with a dot are of its parts."""
    recipe = get_recipe(name)
    found = {}
    for setting in expected:
        part, _, rest = setting.rpartition("__")
        found[setting] = getattr(getattr(recipe, part) if part else recipe, rest)
    assert found == expected


@pytest.mark.parametrize("network", ["spikingformer", "cml_spikingformer", "cml_spikformer"])
@pytest.mark.parametrize("data_set", ["cifar10", "cifar100"])
def test_spikingformer_on_cifar(network: str, data_set: str) -> None:
    for name, epochs in ((f"{network}_4_384_{data_set}_400e", 400), (f"{network}_2_384_{data_set}", 300)):
        check(
            name,
            data_set=data_set,
            optimiser="adamw",
            learning_rate=5e-4,
            final_learning_rate=1e-5,
            weight_decay=0.06,
            batch_size=64,
            epochs=epochs,
            cooldown_epochs=10,
            warmup_epochs=20,
            warmup_learning_rate=1e-5,
            mixing_epochs=200,
            loss="mean_logit",
        )
        policy = get_recipe(name).augmentation
        assert set(policy.operations) == RANDAUGMENT
        assert (policy.num_operations, policy.magnitude, policy.magnitude_std) == (1, 9.0, 0.4)
        assert (policy.mixup, policy.cutmix, policy.erase, policy.flip) == (0.5, 0.0, 0.25, 0.5)
        assert (policy.color_jitter, policy.crop_scale, policy.label_smoothing) == (0.0, None, 0.1)


@pytest.mark.parametrize(("network", "batch_size"), [("spikingformer", 288), ("cml_spikingformer", 192)])
def test_spikingformer_on_imagenet(network: str, batch_size: int) -> None:
    check(
        f"{network}_8_512_imagenet",
        batch_size=batch_size,
        learning_rate=5e-4,
        final_learning_rate=1e-5,
        weight_decay=0.05,
        epochs=300,
        cooldown_epochs=10,
        warmup_epochs=20,
        warmup_learning_rate=1e-6,
        augmentation=IMAGENET,
    )


@pytest.mark.parametrize("network", ["spikingformer", "cml_spikingformer", "cml_spikformer"])
@pytest.mark.parametrize(("data_set", "epochs", "policy"), [("cifar10dvs", 96, CIFAR10_DVS), ("dvs128", 192, DVS128)])
def test_spikingformer_on_events(network: str, data_set: str, epochs: int, policy) -> None:
    check(
        f"{network}_2_256_{data_set}",
        batch_size=16,
        learning_rate=1e-3,
        final_learning_rate=1e-5,
        weight_decay=0.06,
        epochs=epochs,
        cooldown_epochs=10,
        warmup_epochs=10,
        warmup_learning_rate=1e-5,
        mixing_epochs=None,
        augmentation=policy,
    )


def test_spike_driven_on_cifar() -> None:
    for name in (f"{SDT}_2_512_cifar10", f"{SDT}_2_512_cifar100"):
        check(
            name,
            learning_rate=3e-4,
            final_learning_rate=1e-5,
            weight_decay=0.06,
            batch_size=64,
            epochs=300,
            cooldown_epochs=10,
            warmup_epochs=20,
            warmup_learning_rate=1e-6,
            mixing_epochs=200,
            seed=42,
            augmentation__color_jitter=0.5,
            augmentation__mixup=0.5,
            augmentation__cutmix=0.0,
            augmentation__label_smoothing=0.1,
        )
    assert get_recipe(f"{SDT}_2_512_cifar10").preprocessing.given() == {}
    assert set(get_recipe(f"{SDT}_2_512_cifar100").preprocessing.given()) == {"mean", "std"}


@pytest.mark.parametrize(
    ("size", "rate", "final", "batch_size", "repeats"),
    [
        ("8_384", 1.5e-3, 1.5e-5, 384, 3),
        ("6_512", 1e-3, 2e-5, 384, 3),
        ("8_512", 1.5e-3, 1.5e-5, 384, 3),
        ("10_512", 1e-3, 2e-5, 288, 1),
        ("8_768", 1e-3, 2e-5, 288, 3),
    ],
)
def test_spike_driven_on_imagenet(size: str, rate: float, final: float, batch_size: int, repeats: int) -> None:
    check(
        f"{SDT}_{size}_imagenet",
        optimiser="lamb",
        learning_rate=rate,
        final_learning_rate=final,
        weight_decay=0.01,
        batch_size=batch_size,
        epochs=300,
        cooldown_epochs=10,
        warmup_epochs=20,
        warmup_learning_rate=1e-5,
        augmentation__repeats=repeats,
        augmentation__color_jitter=0.4,
        augmentation__mixup=0.2,
        augmentation__cutmix=1.0,
        augmentation__erase=0.0,
        augmentation__magnitude=7.0,
        augmentation__magnitude_std=0.5,
        augmentation__crop_scale=(0.08, 1.0),
        preprocessing__crop_ratio=0.95,
    )


def test_spike_driven_on_events() -> None:
    for name, steps in ((f"{SDT}_2_256_cifar10dvs", 16), (f"{SDT}_2_256_cifar10dvs_t10", 10)):
        check(
            name,
            loss="tet",
            tet_lambda=1e-3,
            learning_rate=7.5e-3,
            final_learning_rate=3e-4,
            weight_decay=1e-4,
            batch_size=32,
            epochs=200,
            cooldown_epochs=10,
            warmup_epochs=10,
            warmup_learning_rate=1e-3,
            model__time_steps=steps,
            model__image_size=(64, 64),
        )
    shared = {"optimiser": "lamb", "batch_size": 16, "epochs": 200, "cooldown_epochs": 10, "warmup_epochs": 10}
    check(f"{SDT}_2_256_dvs128", learning_rate=3e-4, weight_decay=0.06, model__time_steps=16, **shared)
    check(f"{SDT}_2_256_dvs128_t10", learning_rate=2e-3, weight_decay=1e-4, model__time_steps=10, **shared)


def needs(preset: str) -> None:
    if preset not in list_models():
        pytest.skip(f"there is no preset {preset}")


@pytest.mark.parametrize("network", ["maxformer_4_384", "ms_qkformer_4_384", "max_resnet_18"])
def test_max_former_on_cifar(network: str) -> None:
    needs(f"{network}_cifar10")
    shared = {"learning_rate": 1.5e-3, "final_learning_rate": 1e-5, "weight_decay": 0.06, "epochs": 400}
    shared |= {"cooldown_epochs": 10, "warmup_epochs": 20, "augmentation__cutmix": 0.5, "augmentation__erase": 0.25}
    ten = {"batch_size": 128, "warmup_learning_rate": 8e-5, "mixing_epochs": 200, "augmentation__mixup": 0.5}
    check(f"{network}_cifar10", **shared, **ten)
    hundred = {"batch_size": 64, "warmup_learning_rate": 1e-5, "mixing_epochs": 250, "augmentation__mixup": 0.75}
    check(f"{network}_cifar100", **shared, **hundred)


@pytest.mark.parametrize(
    ("name", "rate", "mixup"),
    [
        ("maxformer_10_384_imagenet", 2.7e-3, 0.25),
        ("maxformer_10_512_imagenet", 2.4e-3, 0.4),
        ("maxformer_10_768_imagenet", 2.7e-3, 0.8),
        ("maxformer_10_768_imagenet_t1", 2.4e-3, 0.8),
    ],
)
def test_max_former_on_imagenet(name: str, rate: float, mixup: float) -> None:
    needs("maxformer_10_384_imagenet")
    assert get_recipe(name).learning_rate == pytest.approx(rate)
    assert get_recipe(name).model.time_steps == (1 if "512" in name or name.endswith("_t1") else 4)
    check(
        name,
        batch_size=512,
        epochs=200,
        cooldown_epochs=0,
        warmup_epochs=5,
        weight_decay=0.05,
        augmentation__mixup=mixup,
        augmentation__cutmix=1.0,
        augmentation__mix_probability=0.5,
        augmentation__erase=0.25,
        augmentation__magnitude=9.0,
        augmentation__magnitude_std=0.5,
    )


@pytest.mark.parametrize(("data_set", "epochs"), [("cifar10dvs", 96), ("dvs128", 150)])
def test_max_former_on_events(data_set: str, epochs: int) -> None:
    needs("maxformer_2_256_dvs128")
    check(
        f"maxformer_2_256_{data_set}",
        batch_size=16,
        learning_rate=5e-3,
        final_learning_rate=1e-5,
        weight_decay=0.06,
        epochs=epochs,
        cooldown_epochs=10,
        warmup_epochs=10,
        augmentation__mixup=0.5,
        augmentation__cutmix=0.1,
        augmentation__mix_probability=0.5,
        model__time_steps=16,
    )


def test_qkformer() -> None:
    needs("qkformer_4_384_cifar10")
    for data_set in ("cifar10", "cifar100"):
        check(f"qkformer_4_384_{data_set}", learning_rate=1e-3, epochs=400, cooldown_epochs=10, batch_size=64)
    check("qkformer_2_256_cifar10dvs", learning_rate=5e-3, final_learning_rate=1e-5, epochs=96, cooldown_epochs=10)
    check("qkformer_2_256_dvs128", learning_rate=1e-3, final_learning_rate=2e-5, epochs=192, cooldown_epochs=10)
    check(
        "qkformer_10_768_imagenet",
        batch_size=576,
        accumulate=3,
        epochs=200,
        final_learning_rate=1e-6,
        warmup_epochs=5,
        weight_decay=0.05,
        augmentation__mixup=0.0,
        augmentation__cutmix=0.0,
        augmentation__erase=0.25,
        augmentation__label_smoothing=0.1,
    )
    assert get_recipe("qkformer_10_768_imagenet").learning_rate == pytest.approx(6e-4 * 576 / 256)


def test_sew_resnet() -> None:
    plain = {"optimiser": "sgd", "weight_decay": 0.0, "warmup_epochs": 0, "final_learning_rate": 0.0}
    check(
        "sew_resnet_34_imagenet",
        learning_rate=0.1,
        schedule="cosine",
        epochs=320,
        batch_size=256,
        augmentation__flip=0.5,
        augmentation__crop_scale=(0.08, 1.0),
        **plain,
    )
    check("sew_wide_7b_net_cifar10dvs", learning_rate=0.01, schedule="cosine", epochs=64, batch_size=16, **plain)
    check(
        "sew_7b_net_dvs128",
        learning_rate=1e-3,
        schedule="staircase",
        drop_epochs=64,
        epochs=192,
        batch_size=16,
        augmentation__num_frames=12,
        model__time_steps=16,
        **plain,
    )


def test_the_papers_own_policies_are_left_alone() -> None:
    assert get_recipe("spikformer_4_384_cifar10").augmentation == CIFAR
