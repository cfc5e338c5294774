"""Real photographs, and small sets made of them."""

import numpy as np
import pytest
from sklearn.datasets import load_sample_images

from spikformer.data import ArraySamples, DataSet, open_dataset
from spikformer.preprocessing import Preprocessing


@pytest.fixture(scope="session")
def photographs() -> np.ndarray:
    """Parts of two photographs, [2, H, W, 3]; not square, so that no side is taken for the other."""
    return np.stack([picture[150:246, 220:348] for picture in load_sample_images().images])


@pytest.fixture(scope="session")
def event_set() -> DataSet:
    """Digits seen by a simulated event camera, opened once: that takes more than a second."""
    return open_dataset("digits_dvs")


@pytest.fixture(scope="session")
def colour_set(photographs: np.ndarray) -> DataSet:
    """64 pieces of the photographs, 24×32, in four classes."""
    pieces = photographs.reshape(2, 4, 24, 4, 32, 3).transpose(0, 1, 3, 5, 2, 4).reshape(32, 3, 24, 32)
    images = np.concatenate([pieces, pieces[:, :, :, ::-1]])
    samples = ArraySamples(images, np.arange(64) % 4, "photographs")
    return DataSet(
        name="photographs",
        class_names=("a", "b", "c", "d"),
        preprocessing=Preprocessing(
            kind="image", size=(24, 32), channels=3, mean=(0.49, 0.45, 0.41), std=(0.2, 0.2, 0.25)
        ),
        train=samples,
        validation=None,
        test=None,
        can_mirror=True,
    )
