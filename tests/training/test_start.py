"""Weights of another model as a start: what fits is taken, and what does not is reported."""

from dataclasses import replace

import pytest
import torch
from tests.mistakes import field_error, shows

import spikformer as sf
from spikformer.analysis.specimens import shrunk
from spikformer.models import Spikformer, build_model
from spikformer.training import transfer_weights
from spikformer.training.optim import WeightAverage

pytestmark = pytest.mark.core

HEAD = {"head.weight", "head.bias"}


def with_classes(model: Spikformer, *names: str) -> Spikformer:
    model.card = replace(model.card, class_names=names)
    return model


def build(seed: int, **overrides) -> Spikformer:
    torch.manual_seed(seed)
    model = sf.create_model("spikformer_tiny_digits", **overrides)
    return model.train().requires_grad_(True)


def check(source: Spikformer, model: Spikformer, loaded: tuple[str, ...], before: dict[str, torch.Tensor]) -> None:
    """Loaded tensors are the source's, all others are as they were."""
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, source.state_dict()[name] if name in loaded else before[name]), name


def transferred(source: Spikformer, model: Spikformer):
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    result = transfer_weights(source, model)
    check(source, model, result.loaded, before)
    assert {*result.loaded, *result.new} == model.state_dict().keys()
    assert not {*result.loaded} & {*result.new}
    return result


def test_the_same_model_is_taken_whole() -> None:
    source, model = build(1), build(2)
    result = transferred(source, model)
    assert set(result.loaded) == model.state_dict().keys()
    assert (result.new, result.unused) == ((), ())
    x = torch.randn(2, 1, 8, 8)
    assert torch.equal(model.eval()(x), source.eval()(x))
    assert str(result) == f"{len(result.loaded)} tensors were loaded"


@pytest.mark.parametrize(
    "name", ["sew_7b_net_dvs128", "sew_resnet_18_imagenet", "max_resnet_18_cifar10", "qkformer_4_384_cifar10"]
)
def test_other_architectures_start_from_their_own_weights(name: str) -> None:
    torch.manual_seed(0)
    source, model = (build_model(shrunk(name)) for _ in range(2))
    result = transferred(source, model)
    assert (result.new, result.unused) == ((), ())


def test_a_head_for_another_number_of_classes_is_new() -> None:
    result = transferred(build(1), build(2, num_classes=3))
    assert set(result.new) == HEAD
    assert str(result) == f"{len(result.loaded)} tensors were loaded, 2 are new (head.bias, head.weight)"


def test_a_head_for_as_many_other_classes_is_new_and_for_the_same_ones_it_is_kept() -> None:
    source = with_classes(build(1, num_classes=2), "cat", "dog")
    assert set(transferred(source, with_classes(build(2, num_classes=2), "horse", "ship")).new) == HEAD
    assert transferred(source, with_classes(build(2, num_classes=2), "cat", "dog")).new == ()
    assert set(transferred(source, with_classes(build(2, num_classes=2), "dog", "cat")).new) == HEAD


@pytest.mark.parametrize("image_size", [(16, 16), (4, 12), None])
def test_another_image_size_changes_nothing(image_size: tuple[int, int] | None) -> None:
    model = build(2, image_size=image_size)
    assert transferred(build(1), model).new == ()
    height, width = image_size or (8, 8)
    assert model(torch.randn(2, 1, height, width)).shape == (2, 10)


def test_imagenet_shaped_weights_start_a_cifar_shaped_model() -> None:
    """The same stem with fewer pools; only the biases of Q, K and V and the head are new."""
    wide = {"embed_dim": 96, "num_heads": 12, "depth": 2}
    source = Spikformer(shrunk("spikformer_8_384_imagenet", **wide, num_classes=20))
    model = Spikformer(shrunk("spikformer_4_384_cifar10", **wide))
    result = transferred(source, model)
    biases = {f"blocks.{block}.attention.{part}.linear.bias" for block in (0, 1) for part in ("query", "key", "value")}
    assert set(result.new) == biases | HEAD
    assert result.unused == ()
    assert shows(str(result), 8, "blocks.0.attention.key.linear.bias, blocks.0.attention.query.linear.bias")
    assert str(result).endswith(", …)")


def test_the_transfer_recipes_take_all_but_the_head() -> None:
    for data_set in ("cifar10", "cifar100"):
        recipe = sf.training.get_recipe(f"spikformer_8_384_{data_set}_transfer")
        small = recipe.model.override(embed_dim=64, depth=2, image_size=(32, 32))
        source = Spikformer(small.override(num_classes=1000))
        assert set(transferred(source, Spikformer(small)).new) == HEAD


def test_a_deeper_source_leaves_blocks_unused_and_a_shallower_one_new_blocks() -> None:
    deep, shallow = build(1, depth=2), build(2, depth=1)
    result = transferred(deep, shallow)
    assert result.new == ()
    assert all(name.startswith("blocks.1.") for name in result.unused)
    assert shows(str(result), len(result.unused), "blocks.1.attention")
    result = transferred(shallow, build(3, depth=2))
    assert result.unused == ()
    assert all(name.startswith("blocks.1.") for name in result.new)


def test_other_channels_make_only_the_first_convolution_new() -> None:
    result = transferred(build(1), build(2, in_channels=3))
    assert result.new == ("stem.stages.0.conv.weight",)


def test_an_average_is_as_good_a_source_as_any_and_stays_as_it_is() -> None:
    source = WeightAverage(build(1), decay=0.9).model
    kept = source.head.weight.clone()
    model = build(2)
    assert transferred(source, model).new == ()
    assert all(parameter.requires_grad for parameter in model.parameters())
    with torch.no_grad():
        model.head.weight.add_(1)
    assert torch.equal(source.head.weight, kept)


def test_weights_of_another_precision_are_converted() -> None:
    source, model = build(1).double(), build(2)
    transfer_weights(source, model)
    assert torch.equal(model.head.weight, source.head.weight.float())


@pytest.mark.parametrize("overrides", [{"embed_dim": 32}, {"embed_dim": 32, "neuron": "plif"}], ids=str)
def test_nothing_in_common_is_rejected_and_nothing_is_changed(overrides: dict) -> None:
    """Counters and time constants fit any model, and are not enough."""
    source = build(1, **({"neuron": "plif"} if "neuron" in overrides else {}))
    model = build(2, **overrides)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with field_error("model"):
        transfer_weights(source, model)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
