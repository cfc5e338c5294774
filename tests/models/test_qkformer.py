"""QKFormer: token attention in early stages, sums of spikes, and the leak between samples of the published code."""

import warnings

import pytest
import torch
from tests.mistakes import field_error
from tests.models.weight_inputs import weight_inputs

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.config import MSQKFormerConfig, QKFormerConfig
from spikformer.errors import FieldError
from spikformer.layers.linear import batch_invariant
from spikformer.models import QKFormer, SpikingNetwork, build_model
from spikformer.runs.checks import batch_invariance

CIFAR, IMAGENET, EVENTS = "qkformer_4_384_cifar10", "qkformer_10_384_imagenet", "qkformer_2_256_cifar10dvs"


def leaking(fixed: SpikingNetwork) -> SpikingNetwork:
    with pytest.warns(UserWarning, match="batch_leak"):
        model = build_model(fixed.config.override(batch_leak=True)).double().eval()
    model.load_state_dict(fixed.state_dict())
    return model


@pytest.mark.parametrize("name", [CIFAR, IMAGENET, EVENTS])
def test_the_stream_sums_spikes(name: str) -> None:
    model = specimen(shrunk(name))
    seen = []
    for block in model.blocks:
        block.register_forward_hook(lambda _m, _i, out: seen.append(out))
    inputs = weight_inputs(model, frames_for(model.config, batch_size=2))
    for x in seen:
        assert torch.equal(x, x.round())
        assert 0 <= x.min() <= x.max() <= 2 + 2 * model.config.depth
    binary = {name for name, x in inputs.items() if set(x.unique().tolist()) <= {0.0, 1.0}}
    for block in range(model.config.depth):
        assert {f"blocks.{block}.attention.projection.linear", f"blocks.{block}.mlp.output.linear"} <= binary


def test_early_stages_have_token_attention() -> None:
    model = sf.create_model(IMAGENET)
    assert [block.attention.operands for block in model.blocks] == [("query", "key")] * 3 + [
        ("query", "key", "value")
    ] * 7
    assert model.head.weight.std().item() == pytest.approx(0.02, rel=0.05)


@pytest.mark.parametrize("name", [CIFAR, EVENTS])
def test_the_published_leak_makes_results_depend_on_the_batch(name: str) -> None:
    fixed = specimen(shrunk(name))
    model = leaking(fixed)
    x = frames_for(model.config, batch_size=4)
    samples = x.ndim - 4
    with torch.no_grad(), batch_invariant():
        assert torch.equal(model(x.narrow(samples, 0, 1)), fixed(x.narrow(samples, 0, 1)))
        assert not torch.equal(model(x)[1:2], model(x.narrow(samples, 1, 1)))
        assert not torch.equal(model(x), fixed(x))
    (check,) = batch_invariance(name, fixed)
    assert check.holds
    (check,) = batch_invariance(name, model)
    assert not check.holds


def test_no_preset_leaks_and_none_warns() -> None:
    with warnings.catch_warnings(action="error"), torch.device("meta"):
        for name in sf.list_models("*qkformer*"):
            assert not sf.create_model(name).config.mixes_samples


def test_a_leaking_network_neither_streams_nor_compiles() -> None:
    model = leaking(specimen(shrunk(CIFAR)))
    assert isinstance(model, QKFormer)
    frame = frames_for(model.config, batch_size=2)
    with field_error("batch_leak"):
        model.step(frame, model.initial_state(2))
    with field_error("batch_leak"), warnings.catch_warnings(action="ignore"):
        sf.compile_engine(model.float())


def test_a_leak_is_kept_in_files(tmp_path) -> None:
    model = leaking(specimen(shrunk(CIFAR)))
    with warnings.catch_warnings(action="ignore"):
        sf.save(model, tmp_path / "model.safetensors")
    with pytest.warns(UserWarning, match="batch_leak"):
        again = sf.load(tmp_path / "model.safetensors", dtype=torch.float64)
    assert again.config == model.config
    x = frames_for(model.config, batch_size=3)
    assert torch.equal(again(x), model(x))


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("batch_leak", {"batch_leak": 1}),
        ("batch_leak", {"batch_leak": True, "neuron": "relu"}),
        ("pooled_conv", {"pooled_conv": "both"}),
        ("pooled_conv", {"pooled_conv": "first", "depths": (2,)}),
        ("num_heads", {"embed_dim": 384, "num_heads": 128}),
        ("num_heads", {"num_heads": 7}),
    ],
)
def test_a_wrong_field_is_named(field: str, fields: dict) -> None:
    with pytest.raises(FieldError) as error:
        QKFormerConfig(**fields)
    assert error.value.field == field
    if field != "batch_leak":
        with pytest.raises(FieldError):
            MSQKFormerConfig(**fields)


@pytest.mark.parametrize(("pooled_conv", "halved"), [("first", (True, False)), ("second", (False, True))])
def test_the_pool_between_stages_is_where_the_config_says(pooled_conv: str, halved: tuple[bool, bool]) -> None:
    for config in (QKFormerConfig(pooled_conv=pooled_conv), MSQKFormerConfig(pooled_conv=pooled_conv)):
        with torch.device("meta"):
            model = build_model(config)
        assert all(tuple(unit.pooled for unit in down.branch) == halved for down in model.downsampling)
