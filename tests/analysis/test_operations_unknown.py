"""Modules that are not known to the count: what is inside them counts, and what it would miss is an error."""

from math import prod

import pytest
import torch
from tests.analysis.test_operations import listed, on_paper
from tests.mistakes import field_error
from torch import Tensor, nn

import spikformer as sf
from spikformer.analysis.operations import count_operations

TINY = "spikformer_tiny_digits"


class Wrapped(nn.Module):
    def __init__(self, linear: nn.Module) -> None:
        super().__init__()
        self.inside = linear

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x)


class Skewed(Wrapped):
    """A product that belongs to no layer."""

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x) + x @ torch.ones(x.shape[-1], 256, dtype=x.dtype, device=x.device)


class Twice(nn.Linear):
    """Calls itself a linear layer and is two."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + super().forward(x)


class Convolved(Wrapped):
    """A convolution that belongs to no layer."""

    def forward(self, x: Tensor) -> Tensor:
        kernel = torch.ones(16, 16, 1, dtype=x.dtype, device=x.device)
        return self.inside(nn.functional.conv1d(x, kernel))


class Timeless(Wrapped):
    """Computed for the first step only, and shown at all of them."""

    def forward(self, x: Tensor) -> Tensor:
        return self.inside(x[:1]).expand(len(x), -1, -1)


def test_a_known_layer_inside_an_unknown_module_is_counted() -> None:
    model = sf.create_model(TINY)
    hidden = model.blocks[1].mlp.hidden
    hidden.linear = Wrapped(hidden.linear)
    found = listed(count_operations(model))
    assert ("blocks.1.mlp.hidden.linear.inside", "linear", 16 * 64 * 256) in found
    assert [macs for *_, macs in found] == [macs for *_, macs in on_paper(model.config)]


def test_groups_and_strides_are_counted() -> None:
    model = sf.create_model(TINY)
    model.stem.position.conv = nn.Conv2d(64, 64, 5, padding=2, groups=8)
    found = {layer.name: layer.macs for layer in count_operations(model)}
    assert found["stem.position.conv"] == 16 * 64 * 25 * 8


@pytest.mark.parametrize("kind", [Skewed, Convolved, Timeless])
def test_a_product_outside_of_layers_is_an_error(kind: type[Wrapped]) -> None:
    model = sf.create_model(TINY)
    hidden = model.blocks[0].mlp.hidden
    hidden.linear = kind(hidden.linear)
    with field_error("model"):
        count_operations(model)


def test_a_layer_that_multiplies_more_than_its_kind_is_an_error() -> None:
    model = sf.create_model(TINY)
    model.blocks[0].mlp.hidden.linear = Twice(64, 256)
    ours = on_paper(model.config)
    total = ours[0][2] + 4 * sum(macs for _, _, macs in ours[1:])
    seen = total + 4 * prod((16, 64, 256))
    with field_error("model", f"{seen:,}", f"{total:,}"):
        count_operations(model)


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (nn.Conv1d(4, 4, 1), "Conv1d"),
        (nn.Bilinear(2, 2, 2), "Bilinear"),
        (nn.MultiheadAttention(4, 2), "MultiheadAttention"),
        (nn.LayerNorm(4), "LayerNorm"),
        (nn.Softmax(-1), "Softmax"),
        (nn.ParameterList([torch.ones(2)]), "ParameterList"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_module_of_an_unknown_kind_is_an_error_wherever_it_is(module: nn.Module, kind: str) -> None:
    model = sf.create_model(TINY)
    model.blocks[1].attention.extra = module
    with field_error("blocks.1.attention.extra", kind):
        count_operations(model)


def test_a_weight_that_hangs_in_a_container_is_an_error() -> None:
    model = sf.create_model(TINY)
    model.blocks[0].mlp.gate = nn.Parameter(torch.ones(64, 64))
    with field_error("blocks.0.mlp", "SpikingMLP"):
        count_operations(model)
