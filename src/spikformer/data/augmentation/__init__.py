"""Augmentation of whole batches: a policy says what may happen, an augmenter does it on the samples' device."""

from spikformer.data.augmentation.augmenter import Augmenter, mirrored_in
from spikformer.data.augmentation.policy import CIFAR, CIFAR10_DVS, DVS128, IMAGENET, Augmentation, Operation

__all__ = ["CIFAR", "CIFAR10_DVS", "DVS128", "IMAGENET", "Augmentation", "Augmenter", "Operation", "mirrored_in"]
