"""Image files of every set the paper uses, as arrays of bytes; nothing here normalises, augments or batches."""

from spikformer.data.images.cifar import Cifar, read_cifar
from spikformer.data.images.idx import read_idx
from spikformer.data.images.labelled import LabelledImages
from spikformer.data.images.mnist import Mnist, read_mnist
from spikformer.data.images.picture import read_picture

__all__ = [
    "Cifar",
    "LabelledImages",
    "Mnist",
    "read_cifar",
    "read_idx",
    "read_mnist",
    "read_picture",
]
