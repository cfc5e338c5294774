"""Small networks that fire, with inputs for them, and the kernels of each instruction set."""

from collections.abc import Callable

import pytest
import torch
from tests.engine.drawn import SETS
from torch import Tensor

from spikformer import _native
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.models import Spikformer

Case = tuple[Spikformer, Tensor]


@pytest.fixture(scope="session")
def case() -> Callable[..., Case]:
    """A shrunk preset in float32, with inputs for it."""

    def build(name: str = "spikformer_4_384_cifar10", batch_size: int = 5, **overrides: object) -> Case:
        config = shrunk(name, **overrides)
        return specimen(config, torch.float32), frames_for(config, batch_size, torch.float32, seed=3)

    return build


@pytest.fixture(scope="module", params=SETS)
def kernels(request: pytest.FixtureRequest) -> _native.Kernels:
    return _native.Kernels(request.param)
