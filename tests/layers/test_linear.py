"""Inside `batch_invariant()`, float64 gives a sample the same bits in any batch, at any address."""

import pytest
import torch
from torch import Tensor

from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.layers.attention import softmax_product
from spikformer.layers.conv import Conv2d
from spikformer.layers.linear import Linear, batch_invariant, by_sample

pytestmark = pytest.mark.core


def at_another_address(x: Tensor) -> Tensor:
    """Equal, and eight bytes off any alignment."""
    moved = torch.empty(x.numel() + 1, dtype=x.dtype)[1:].view(x.shape)
    return moved.copy_(x)


@pytest.mark.parametrize(("rows", "features"), [(15, 13), (5, 37), (3, 129)])
@pytest.mark.parametrize("kind", ["linear", "conv", "softmax"])
def test_odd_sizes_do_not_depend_on_the_batch(kind: str, rows: int, features: int) -> None:
    linear = Linear(features, 41).double().eval()
    conv = Conv2d(3, features, 3, padding=1).double().eval()

    def run(x: Tensor) -> Tensor:
        if kind == "conv":
            return conv(x)
        return linear(x) if kind == "linear" else by_sample(softmax_product, x, x, x)

    x = torch.randn((7, 3, rows, 7) if kind == "conv" else (7, rows, features), dtype=torch.float64)
    with batch_invariant():
        together = run(x)
        for index in range(7):
            assert torch.equal(run(x[index : index + 1].clone())[0], together[index])
            assert torch.equal(run(x[index : index + 1])[0], together[index])
        assert torch.equal(run(at_another_address(x)), together)


def test_samples_are_multiplied_alone_only_inside_the_context() -> None:
    sizes: list[int] = []

    def count(x: Tensor) -> Tensor:
        sizes.append(len(x))
        return x

    x = torch.randn(3, 2, dtype=torch.float64)
    by_sample(count, x)
    with batch_invariant(), batch_invariant():
        by_sample(count, x)
    by_sample(count, x)
    assert sizes == [3, 1, 1, 1, 3]


@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "transformer_4_384_cifar10"])
def test_a_network_of_odd_width_does_not_depend_on_the_batch(name: str) -> None:
    # 15 tokens of 4 stages to width 24 or 2 to 10: samples start off any multiple of 64 bytes.
    size, width = ((12, 20), 24) if name.startswith("transformer") else ((6, 10), 10)
    model = specimen(shrunk(name, depth=1, image_size=size, embed_dim=width, num_heads=2))
    x = frames_for(model.config, batch_size=5)
    with torch.no_grad(), batch_invariant():
        together = model(x)
        assert torch.equal(model(at_another_address(x)), together)
        for index in range(5):
            assert torch.equal(model(x[index : index + 1])[0], together[index])
