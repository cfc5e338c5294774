"""scikit-learn's handwritten digits: 1,797 images of 8×8, embedded in the library, no download."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Split(NamedTuple):
    """Images [B, 1, 8, 8] with mean 0 and variance 1 over the training split, and their labels [B]."""

    images: Tensor
    labels: Tensor


def load_digits() -> tuple[Split, Split]:
    """Training and test splits, 80 % and 20 % of every class, always the same."""
    from sklearn.datasets import load_digits as read
    from sklearn.model_selection import train_test_split

    images, labels = read(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=0)
    mean, std = train_x.mean(), train_x.std()

    def split(x: object, y: object) -> Split:
        pixels = torch.as_tensor(x, dtype=torch.float32).view(-1, 1, 8, 8)
        return Split((pixels - mean) / std, torch.as_tensor(y))

    return split(train_x, train_y), split(test_x, test_y)
