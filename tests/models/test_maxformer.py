"""Max-Former and MS-QKFormer: membranes between stages, spikes before every weight but the first, how they start."""

import pytest
import torch
from tests.models.weight_inputs import weight_inputs

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import MaxFormerConfig
from spikformer.errors import FieldError
from spikformer.models import MaxFormer, MSQKFormer, build_model

pytestmark = pytest.mark.core

CIFAR, IMAGENET, EVENTS = "maxformer_4_384_cifar10", "maxformer_10_384_imagenet", "maxformer_2_256_cifar10dvs"
OURS = ["maxformer_tiny_digits", "maxformer_tiny_digits_dvs", "maxformer_small_cifar10"]
MEMBRANES = ["ms_qkformer_4_384_cifar10", "ms_qkformer_10_384_imagenet"]


@pytest.mark.parametrize("name", [CIFAR, IMAGENET, EVENTS, *OURS, *MEMBRANES])
def test_all_weights_but_the_first_see_spikes(name: str) -> None:
    model = specimen(shrunk(name))
    inputs = weight_inputs(model, frames_for(model.config, batch_size=2))
    real = {layer for layer, x in inputs.items() if not set(x.unique().tolist()) <= {0.0, 1.0}}
    assert real == {"stem.stages.0.conv"}


@pytest.mark.parametrize(
    ("name", "sides"), [(CIFAR, (32, 16, 8)), (IMAGENET, (56, 28, 14)), (EVENTS, (16, 8)), (OURS[0], (8, 4))]
)
def test_stages_halve_the_resolution_and_double_the_width(name: str, sides: tuple[int, ...]) -> None:
    with torch.device("meta"):
        model, seen = sf.create_model(name, time_steps=1).eval(), []
        for embedding in (model.stem, *model.downsampling):
            embedding.register_forward_hook(lambda _m, _i, out: seen.append(tuple(out.shape[2:])))
        config = model.config
        model(torch.empty(1, config.in_channels, *config.image_size))
    assert seen == [(width, side, side) for width, side in zip(config.widths, sides, strict=True)]
    assert config.grid == (sides[-1], sides[-1])


def test_early_stages_mix_by_depth_wise_convolutions_or_not_at_all() -> None:
    model = sf.create_model(IMAGENET)
    kernels = [block.conv.conv.kernel_size for block in model.blocks[:3]]
    assert kernels == [(7, 7), (5, 5), (5, 5)]
    assert all(block.conv.conv.groups == block.conv.conv.in_channels for block in model.blocks[:3])
    assert [hasattr(block, "attention") for block in model.blocks] == [False] * 3 + [True] * 7
    assert not hasattr(sf.create_model(CIFAR).blocks[0], "conv")


def test_a_ratio_of_one_has_an_inner_residual_sum() -> None:
    assert all(block.mlp.inner_residual for block in build_model(shrunk(EVENTS)).blocks)
    assert not any(block.mlp.inner_residual for block in build_model(shrunk(CIFAR)).blocks)


@pytest.mark.parametrize("name", [CIFAR, MEMBRANES[0]])
def test_on_cifar_the_head_alone_starts_truncated_normal(name: str) -> None:
    model = sf.create_model(name)
    assert isinstance(model, MaxFormer | MSQKFormer)
    assert model.head.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not model.head.bias.any()
    assert model.blocks[-1].mlp.hidden.linear.weight.std().item() == pytest.approx((3 * 384) ** -0.5, rel=0.05)
    model.reset_classifier(100)
    assert not model.head.bias.any()


@pytest.mark.parametrize("name", [IMAGENET, MEMBRANES[1]])
def test_on_imagenet_convolutions_and_mlps_do(name: str) -> None:
    model = sf.create_model(name, depths=(1, 1, 1))
    block = model.blocks[-1]
    for layer in (model.downsampling[-1].branch[0].conv, block.mlp.hidden.linear, block.mlp.output.linear):
        assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert not block.mlp.hidden.linear.bias.any()
    assert block.attention.query.linear.weight.std().item() == pytest.approx((3 * 384) ** -0.5, rel=0.05)
    assert block.attention.projection.linear.bias.any()
    model.reset_classifier(100)
    assert model.head.bias.any()


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("depths", {"depths": ()}),
        ("depths", {"depths": (1, 0, 2)}),
        ("depths", {"depths": 4}),
        ("depths", {"depths": (1,) * 9}),
        ("depths", {"depths": (1, 10**9, 1)}),
        ("depths", {"depths": (1, True, 2)}),
        ("mixer_kernels", {"mixer_kernels": (3,)}),
        ("mixer_kernels", {"mixer_kernels": (0, 4)}),
        ("mixer_kernels", {"mixer_kernels": (0, -3)}),
        ("mixer_kernels", {"mixer_kernels": 3}),
        ("mixer_kernels", {"depths": (1, 2)}),
        ("stem", {"stem": "half"}),
        ("embed_dim", {"embed_dim": 100, "num_heads": 4}),
        ("embed_dim", {"embed_dim": 240, "stem": "eighth", "image_size": 128}),
        ("num_heads", {"num_heads": 7}),
        ("mlp_ratio", {"mlp_ratio": 1.01}),
        ("image_size", {"image_size": 30}),
        ("image_size", {"stem": "quarter", "image_size": 40}),
        ("image_size", {"attention": "spike_driven_dilated", "image_size": None}),
        ("initialisation", {"initialisation": "torch"}),
        ("time_steps", {"image_size": 1024, "attention": "softmax"}),
    ],
)
def test_a_wrong_field_is_named(field: str, fields: dict) -> None:
    with pytest.raises(FieldError) as error:
        MaxFormerConfig(**fields)
    assert error.value.field == field
    assert len(str(error.value)) < 300


def test_what_follows_from_the_fields() -> None:
    config = MaxFormerConfig(depths=[1, 1, 2], mixer_kernels=[0, 3])
    assert config == MaxFormerConfig()
    assert (config.depth, config.patch_size, config.num_tokens, config.head_dim) == (4, 4, 64, 48)
    assert (config.widths, config.hidden_dims) == ((96, 192, 384), (384, 768, 1536))
    assert config.title == "Max-Former-4-384"
    assert MaxFormerConfig.from_dict(config.to_dict()) == config
    assert config.largest_activation == 4 * 32 * 32 * 384
    assert MaxFormerConfig(image_size=128, attention="softmax").largest_activation == 4 * 8 * 1024**2


def test_an_option_of_another_architecture_is_named() -> None:
    for name, option in ((CIFAR, "batch_leak"), (CIFAR, "depth"), (MEMBRANES[0], "mixer_kernels")):
        with pytest.raises(FieldError) as error:
            sf.create_model(name, **{option: 1})
        assert error.value.field == option


@pytest.mark.parametrize("name", [CIFAR, MEMBRANES[0], "qkformer_4_384_cifar10"])
def test_an_open_image_size(name: str) -> None:
    fixed = specimen(shrunk(name))
    model = build_model(fixed.config.override(image_size=None)).double().eval()
    model.load_state_dict(fixed.state_dict())
    x = frames_for(fixed.config, batch_size=2)
    assert torch.equal(model(x), fixed(x))
    assert model(torch.randn(1, 3, 8, 20, dtype=torch.float64)).shape == (1, 10)
