"""Spike-driven Transformer, of the first version."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from spikformer.config import NetworkConfig
from spikformer.data.augmentation import CIFAR10_DVS, DVS128, IMAGENET
from spikformer.data.options import PreprocessingOptions
from spikformer.training.recipe import Recipe
from spikformer.training.recipes.registry import Family, Row, rows_of
from spikformer.training.recipes.spikingformer import WHOLE_RANDAUGMENT

_CIFAR100 = PreprocessingOptions(mean=(0.5071, 0.4867, 0.4408), std=(0.2675, 0.2565, 0.2761))


def cifar(model: NetworkConfig, data_set: str) -> Recipe:
    """CIFAR, from the authors' configuration: batch 64, 300 epochs and 10 of cool-down, colour jitter 0.5, seed 42.

    CIFAR-100 has its own normalisation, whose digits are the usual ones; mirror images are timm's default. timm leaves
    colour jitter out where it has RandAugment, so the authors' runs may not have had it: --augmentation.color-jitter 0.
    """
    return Recipe(
        data_set=data_set,
        model=model,
        augmentation=replace(WHOLE_RANDAUGMENT, color_jitter=0.5, erase=0.0),
        preprocessing=_CIFAR100 if data_set == "cifar100" else PreprocessingOptions(),
        epochs=300,
        cooldown_epochs=10,
        mixing_epochs=200,
        batch_size=64,
        learning_rate=3e-4,
        warmup_learning_rate=1e-6,
        seed=42,
    )


def imagenet(model: NetworkConfig, learning_rate: float = 1e-3, per_gpu: int = 48, repeats: int = 3) -> Recipe:
    """ImageNet, from the authors' configurations: LAMB, 300 epochs and 10 of cool-down, three repeats of each sample.

    The configurations differ in what is one number for all here, ours: magnitude 7 (or 5), crops from 0.08 (or 0.2) of
    the area, and every batch mixed (down to 0.6 of them); so are 8 GPUs, and gradients clipped as timm's LAMB does.
    """
    return Recipe(
        data_set="imagenet",
        model=model,
        augmentation=replace(
            IMAGENET,
            magnitude=7.0,
            crop_scale=(0.08, 1.0),
            color_jitter=0.4,
            mixup=0.2,
            erase=0.0,
            repeats=repeats,
        ),
        preprocessing=PreprocessingOptions(crop_ratio=0.95),
        epochs=300,
        cooldown_epochs=10,
        batch_size=8 * per_gpu,
        optimiser="lamb",
        learning_rate=learning_rate,
        final_learning_rate=1.5e-5 if learning_rate == 1.5e-3 else 2e-5,
        weight_decay=0.01,
        clip_gradient=1.0,
        validation_share=0.02,
    )


def cifar10_dvs(model: NetworkConfig, time_steps: int | None = None) -> Recipe:
    """CIFAR10-DVS at 64×64, from the authors' configuration: TET, batch 32, 200 epochs and 10 of cool-down.

    The configuration has T = 10, which is `_t10`; T = 16 is that of the accuracy that is quoted. Ours: the
    augmentation, which is Spikformer's.
    """
    return Recipe(
        data_set="cifar10dvs",
        model=_with_steps(model, time_steps),
        augmentation=CIFAR10_DVS,
        epochs=200,
        cooldown_epochs=10,
        batch_size=32,
        loss="tet",
        learning_rate=7.5e-3,
        final_learning_rate=3e-4,
        warmup_epochs=10,
        warmup_learning_rate=1e-3,
        weight_decay=1e-4,
    )


def dvs128(
    model: NetworkConfig, time_steps: int | None = None, learning_rate: float = 3e-4, weight_decay: float = 0.06
) -> Recipe:
    """DVS128 Gesture, from the authors' configurations for T = 16 and T = 10: LAMB, batch 16, 200 epochs and 10.

    Ours: the augmentation, which is Spikformer's, the learning rates at both ends, and gradients clipped as timm's LAMB
    does.
    """
    return Recipe(
        data_set="dvs128",
        model=_with_steps(model, time_steps),
        augmentation=DVS128,
        epochs=200,
        cooldown_epochs=10,
        batch_size=16,
        optimiser="lamb",
        learning_rate=learning_rate,
        warmup_epochs=10,
        weight_decay=weight_decay,
        clip_gradient=1.0,
    )


def _with_steps(model: NetworkConfig, time_steps: int | None) -> NetworkConfig:
    return model if time_steps is None else model.override(time_steps=time_steps)


_NAME = "spike_driven_transformer"
_FAMILIES: dict[str, Family] = {
    f"{_NAME}_8_384_imagenet": partial(imagenet, learning_rate=1.5e-3),
    f"{_NAME}_6_512_imagenet": imagenet,
    f"{_NAME}_8_512_imagenet": partial(imagenet, learning_rate=1.5e-3),
    f"{_NAME}_10_512_imagenet": partial(imagenet, per_gpu=36, repeats=1),
    f"{_NAME}_8_768_imagenet": partial(imagenet, per_gpu=36),
    f"{_NAME}_2_256_cifar10": partial(cifar, data_set="cifar10"),
    f"{_NAME}_2_512_cifar10": partial(cifar, data_set="cifar10"),
    f"{_NAME}_2_512_cifar100": partial(cifar, data_set="cifar100"),
    f"{_NAME}_2_256_cifar10dvs": cifar10_dvs,
    f"{_NAME}_2_256_dvs128": dvs128,
}
ROWS = rows_of(_FAMILIES) | {
    f"{_NAME}_2_256_cifar10dvs_t10": Row(f"{_NAME}_2_256_cifar10dvs", partial(cifar10_dvs, time_steps=10)),
    f"{_NAME}_2_256_dvs128_t10": Row(
        f"{_NAME}_2_256_dvs128", partial(dvs128, time_steps=10, learning_rate=2e-3, weight_decay=1e-4)
    ),
}
