"""MACs by closed formulas for every model, no product that goes uncounted, and summaries that add up."""

from copy import deepcopy
from typing import get_args

import pytest
import torch
from tests.mistakes import field_error

import spikformer as sf
from spikformer.analysis.operations import LayerOperations, count_operations
from spikformer.analysis.recorder import record
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import (
    Attention,
    HierarchicalConfig,
    MaxResNetConfig,
    ModelConfig,
    NetworkConfig,
    SEWEventConfig,
    SEWResNetConfig,
)
from spikformer.models import Spikformer, build_model
from spikformer.presets import get_preset

TINY = "spikformer_tiny_digits"
# Those in stages are counted in test_operations_stages.py.
OTHERS = [name for name in sf.list_models() if not isinstance(get_preset(name).config, HierarchicalConfig)]
# One of those that differ in time steps or classes alone.
MODELS = [*{get_preset(name).config.override(time_steps=1, num_classes=10): name for name in OTHERS}.values()]
MARKED = [pytest.param(name, marks=pytest.mark.slow) if name.endswith("imagenet") else name for name in MODELS]
# Of ResNets with the stride in the 3×3 convolution, as commonly printed: 1.814, 3.664, 4.089, 7.801 and 11.514 G.
RESNET_MACS = {
    "sew_resnet_18_imagenet": 1_814_073_344,
    "sew_resnet_34_imagenet": 3_663_761_408,
    "sew_resnet_50_imagenet": 4_089_184_256,
    "sew_resnet_101_imagenet": 7_801_405_440,
    "sew_resnet_152_imagenet": 11_513_626_624,
}


Listed = list[tuple[str, str, int]]


def on_paper(config: NetworkConfig) -> Listed:
    """Name, kind and MACs of every layer, from the description of the network alone."""
    written = {SEWResNetConfig: sew_resnet, SEWEventConfig: sew_event_net, MaxResNetConfig: max_resnet}
    return written.get(type(config), transformer)(config)


def conv(name: str, side: int, kernel: int, channels: int, wide: int) -> tuple[str, str, int]:
    """Of a square map that it leaves."""
    return f"{name}.conv", "conv", side**2 * kernel**2 * channels * wide


def sew_resnet(config: SEWResNetConfig) -> Listed:
    side, channels = config.image_size[0] // config.stem_stride, config.widths[0]
    layers = [conv("stem", side, config.stem_kernel_size, config.in_channels, channels)]
    side //= 2 if config.stem_pool else 1
    for stage, (wide, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
        for block in range(depth):
            place, stride = f"stages.{stage}.{block}", 2 if stage > 0 and block == 0 else 1
            small, out = side // stride, wide if config.block == "basic" else 4 * wide
            if config.block == "basic":
                layers += [conv(f"{place}.layers.0", small, 3, channels, wide)]
                layers += [conv(f"{place}.layers.1", small, 3, wide, wide)]
            else:
                layers += [conv(f"{place}.layers.0", side, 1, channels, wide)]
                layers += [conv(f"{place}.layers.1", small, 3, wide, wide)]
                layers += [conv(f"{place}.layers.2", small, 1, wide, out)]
            if stride > 1 or channels != out:
                layers += [conv(f"{place}.shortcut", small, 1, channels, out)]
            side, channels = small, out
    return [*layers, ("head", "linear", channels * config.num_classes)]


def max_resnet(config: MaxResNetConfig) -> Listed:
    side, channels = config.image_size[0], config.stem_width
    layers = [conv("stem", side, 3, config.in_channels, channels)]
    for stage, (wide, depth) in enumerate(zip(config.widths, config.depths, strict=True)):
        for block in range(depth):
            place, small = f"stages.{stage}.{block}", side // 2 if stage > 0 and block == 0 else side
            layers += [conv(f"{place}.layers.0", side, 3, channels, wide)]
            layers += [conv(f"{place}.layers.1", small, 3, wide, wide)]
            if block == 0:
                layers += [conv(f"{place}.shortcut", small, 1, channels, wide)]
            side, channels = small, wide
    return [*layers, ("head", "linear", channels * config.num_classes)]


def sew_event_net(config: SEWEventConfig) -> Listed:
    side, channels, layers, index = config.image_size[0], config.in_channels, [], 0
    for wide in config.widths:
        if wide != channels:
            layers += [conv(f"layers.{index}", side, 1, channels, wide)]
            index += 1
        layers += [conv(f"layers.{index}.layers.{unit}", side, 3, wide, wide) for unit in range(2)]
        side, channels, index = side // 2, wide, index + 2
    return [*layers, ("head", "linear", side**2 * channels * config.num_classes)]


def transformer(config: ModelConfig) -> Listed:
    height, width = config.image_size or (0, 0)
    channels, layers = config.in_channels, []
    for stage, (wide, pooled) in enumerate(zip(config.stage_channels, config.pool_stages, strict=True)):
        layers.append((f"stem.stages.{stage}.conv", "conv", height * width * 9 * channels * wide))
        height, width, channels = height // (1 + pooled), width // (1 + pooled), wide
    n, d, hidden = height * width, config.embed_dim, config.mlp_dim
    layers.append(("stem.position.conv", "conv", n * 9 * d * d))
    mixed = "softmax" in config.attention or n <= config.head_dim
    projections = {"none": ("value",), "token": ("query", "key")}
    for block in range(config.depth):
        projected = projections.get(config.attention, ("value", "query", "key"))
        layers += [(f"blocks.{block}.attention.{name}.linear", "linear", n * d * d) for name in projected]
        if config.attention not in ("none", "spike_driven", "spike_driven_dilated", "token"):  # without matrices
            cost = 2 * n * n * d if mixed else 2 * n * d * config.head_dim
            layers.append((f"blocks.{block}.attention.mixing", "attention", cost))
        layers.append((f"blocks.{block}.attention.projection.linear", "linear", n * d * d))
        layers += [(f"blocks.{block}.mlp.{name}.linear", "linear", n * d * hidden) for name in ("hidden", "output")]
    return [*layers, ("head", "linear", d * config.num_classes)]


def count(config: NetworkConfig) -> list[LayerOperations]:
    with torch.device("meta"):
        return count_operations(build_model(config))


def listed(layers: list[LayerOperations]) -> Listed:
    return [(layer.name, layer.kind, layer.macs) for layer in layers]


@pytest.mark.parametrize("name", MARKED)
def test_every_model(name: str) -> None:
    """In one step, for speed: MACs of a step are the same in all."""
    config = get_preset(name).config
    assert listed(count(config.override(time_steps=1))) == on_paper(config)


@pytest.mark.parametrize("name", RESNET_MACS)
def test_sew_resnets_have_the_macs_of_resnets(name: str) -> None:
    layers = count(get_preset(name).config.override(time_steps=1))
    assert sum(layer.macs for layer in layers) == RESNET_MACS[name]


def test_the_largest_part_is_not_lost() -> None:
    """Of 4-384 for CIFAR-10, half lies in linear layers, which a counter once skipped by their names."""
    layers = count(get_preset("spikformer_4_384_cifar10").config)
    by_kind = {kind: sum(layer.macs for layer in layers if layer.kind == kind) for kind in ("conv", "linear")}
    assert by_kind["linear"] == 4 * 12 * 64 * 384**2 + 384 * 10
    assert by_kind["conv"] == 9 * (32**2 * (3 * 48 + 48 * 96 + 96 * 192) + 16**2 * 192 * 384 + 8**2 * 384**2)


@pytest.mark.parametrize("attention", get_args(Attention))
@pytest.mark.parametrize("num_heads", [4, 2, 8])
def test_every_attention_in_both_orders(attention: str, num_heads: int) -> None:
    """Of 16 tokens, heads of 16, 32 and 8 features: as many, fewer and more tokens than features."""
    config = get_preset(TINY).config.override(attention=attention, num_heads=num_heads)
    layers = count(config)
    assert listed(layers) == on_paper(config)
    for layer in layers:
        if layer.kind != "attention":
            assert layer.products == layer.orders == {}
            continue
        expected = {"query_key_first": (16 * 16 * 64,) * 2}
        if "softmax" not in attention:
            expected["key_value_first"] = (16 * 64 * 64 // num_heads,) * 2
        assert layer.products == expected
        assert layer.orders["torch"] == min(expected, key=lambda order: expected[order])
        assert layer.macs == sum(expected[layer.orders["torch"]])
        keys_first = "softmax" not in attention and 64 // num_heads <= 2 * 16
        assert (layer.orders["engine"] == "key_value_first") == keys_first
        assert layer.twin_macs == 2 * 16 * 16 * 64


@pytest.mark.parametrize(
    ("name", "overrides"),
    [(TINY, {}), ("spikformer_2_256_dvs128", {}), ("transformer_4_384_cifar10", {}), (TINY, {"time_steps": 3})],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_real_networks_whatever_their_dtype_and_steps(name: str, overrides: dict[str, int], dtype: torch.dtype) -> None:
    config = shrunk(name, **overrides)
    assert listed(count_operations(Spikformer(config).to(dtype))) == on_paper(config)


def test_an_open_size_has_to_be_given() -> None:
    model = sf.create_model(TINY, image_size=None)
    with field_error("image_size"):
        count_operations(model)
    assert listed(count_operations(model, (12, 8))) == on_paper(get_preset(TINY).config.override(image_size=(12, 8)))


def test_counting_leaves_the_model_alone() -> None:
    model = specimen(shrunk(TINY)).train()
    before = deepcopy(model.state_dict())
    count_operations(model)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert not any(module._forward_hooks for module in model.modules())


def test_those_who_watch_the_model_do_not_see_it_counted() -> None:
    model = specimen(shrunk(TINY))
    calls = []
    model.head.register_forward_hook(lambda _module, _inputs, output: calls.append(output.sum().item()))
    model.head.register_forward_pre_hook(lambda _module, inputs: calls.append(inputs[0].sum().item()))
    with torch.no_grad(), record(model) as seen:
        model(frames_for(model.config, 2))
        count_operations(model)
    assert len(calls) == 2
    assert seen.spikes["stem.position.neuron"].shape[1] == 2
    assert len(model.head._forward_hooks) == len(model.head._forward_pre_hooks) == 1


@pytest.mark.core
@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "spikformer_2_256_dvs128", "transformer_4_384_cifar10"])
def test_sums_are_the_models(name: str) -> None:
    model = sf.create_model(name)
    found = sf.summary(model)
    assert found.num_parameters == sum(parameter.numel() for parameter in model.parameters())
    assert found.macs == sum(layer.macs for layer in count_operations(model))
    assert found.title == model.config.title


@pytest.mark.core
def test_rows_have_names_shapes_and_costs() -> None:
    model = sf.create_model("spikformer_tiny_digits")
    rows = {layer.name: layer for layer in sf.summary(torch.nn.DataParallel(model)).layers}
    assert rows["stem.stages.0.conv"].shape == (32, 8, 8)
    assert rows["stem.stages.0.neuron"].shape == (32, 8, 8)
    assert rows["blocks.0.attention.query.linear"].shape == (16, 64)
    assert rows["blocks.1.mlp.hidden.neuron"].shape == (16, 256)
    assert rows["blocks.1.mlp.hidden.neuron"].kind == "LIF"
    assert rows["head"].macs == 640
    assert list(rows)[-1] == "head"


@pytest.mark.core
def test_the_table_shows_every_layer() -> None:
    text = str(sf.summary(sf.create_model("spikformer_tiny_digits", depth=1)))
    assert "blocks.0.attention.mixing" in text
    assert text.splitlines()[-1].startswith("Spikformer-1-64")
