"""Every wrong config raises an error that names its field; every right one follows its fields."""

import dataclasses
import json
import pickle

import pytest
from tests.mistakes import field_error, shows

import spikformer as sf
from spikformer.errors import FieldError
from spikformer.presets import get_preset

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("image_size", {"image_size": 30}),
        ("image_size", {"image_size": (32, 33)}),
        ("image_size", {"image_size": "32"}),
        ("image_size", {"image_size": (32, 32, 3)}),
        ("image_size", {"image_size": (32, 0)}),
        ("image_size", {"image_size": 32.0}),
        ("embed_dim", {"embed_dim": 100, "num_heads": 4}),
        ("embed_dim", {"embed_dim": 0}),
        ("num_heads", {"embed_dim": 384, "num_heads": 7}),
        ("depth", {"depth": -1}),
        ("depth", {"depth": True}),
        ("depth", {"depth": 10**5000}),
        ("time_steps", {"time_steps": 2.5}),
        ("num_classes", {"num_classes": -1}),
        ("in_channels", {"in_channels": 0}),
        ("mlp_ratio", {"mlp_ratio": 1.001}),
        ("mlp_ratio", {"mlp_ratio": -1.0}),
        ("pool_stages", {"pool_stages": ()}),
        ("pool_stages", {"pool_stages": (1, 0, 1, 0)}),
        ("pool_stages", {"pool_stages": 4}),
        ("pool_stages", {"pool_stages": (True,) * 21}),
        ("attention", {"attention": "sofmax"}),
        ("attention", {"attention": ["ssa"]}),
        ("attention_scale", {"attention_scale": 0.0}),
        ("attention_scale", {"attention_scale": float("nan")}),
        ("learnable_scale", {"learnable_scale": 1}),
        ("learnable_scale", {"learnable_scale": True, "attention": "softmax"}),
        ("qk_pool", {"qk_pool": 2}),
        ("qk_pool", {"qk_pool": 3, "attention": "none"}),
        ("qkv_bias", {"qkv_bias": None}),
        ("neuron", {"neuron": "LIF"}),
        ("neuron", {"neuron": "\x1b" * 1000}),
        ("tau", {"tau": 0.5}),
        ("tau", {"tau": 1.0, "neuron": "plif"}),
        ("tau", {"tau": "2"}),
        ("tau", {"tau": 3.0, "neuron": "if"}),
        ("v_threshold", {"v_threshold": -1.0}),
        ("v_threshold", {"v_threshold": 0.0, "v_reset": None}),
        ("v_threshold", {"v_threshold": 2.0, "neuron": "relu"}),
        ("attention_v_threshold", {"v_reset": 0.75}),
        ("detach_reset", {"detach_reset": 0}),
        ("detach_reset", {"detach_reset": False, "neuron": "relu"}),
        ("surrogate", {"surrogate": "arctan", "neuron": "gelu"}),
        ("surrogate", {"surrogate": "relu"}),
        ("surrogate_alpha", {"surrogate_alpha": 0}),
        ("time_steps", {"time_steps": 10**6}),
        ("time_steps", {"image_size": 8192}),
        ("time_steps", {"image_size": 1024, "attention": "softmax"}),
        ("time_steps", {"num_classes": 10**6, "time_steps": 1000}),
        ("linear_init", {"linear_init": "xavier"}),
    ],
)
def test_a_wrong_field_is_named(field: str, fields: dict) -> None:
    with pytest.raises(FieldError) as error:
        sf.ModelConfig(**fields)
    assert error.value.field == field
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300
    assert pickle.loads(pickle.dumps(error.value)).field == field


def test_an_error_says_what_was_expected_given_and_fits() -> None:
    with field_error("num_heads", 384, 7) as error:
        sf.ModelConfig(embed_dim=384, num_heads=7)
    assert any(shows(str(error.value), fitting) for fitting in (6, 8))
    with pytest.raises(FieldError, match=r"^depth must be an integer of at least 1, got -1\.$"):
        sf.ModelConfig(depth=-1)


def test_an_int_means_both_sides_and_a_list_is_a_tuple() -> None:
    config = sf.ModelConfig(image_size=16, pool_stages=[True, False, True, False])
    assert config.image_size == (16, 16)
    assert config.pool_stages == (True, False, True, False)
    assert hash(config) == hash(sf.ModelConfig(image_size=(16, 16), pool_stages=(True, False, True, False)))


def test_what_follows_from_the_fields() -> None:
    config = sf.ModelConfig(image_size=(32, 64), embed_dim=384, num_heads=12, mlp_ratio=4)
    assert (config.patch_size, config.num_tokens, config.head_dim, config.mlp_dim) == (4, 128, 32, 1536)
    assert config.stage_channels == (48, 96, 192, 384)
    assert sf.ModelConfig(image_size=None).num_tokens is None
    assert sf.ModelConfig(pool_stages=(True,), embed_dim=12, num_heads=3).stage_channels == (12,)


def test_config_survives_json() -> None:
    config = sf.ModelConfig(image_size=(8, 16), pool_stages=(False, True), neuron="plif")
    assert sf.ModelConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


def test_files_of_earlier_releases_have_fewer_fields() -> None:
    values = sf.ModelConfig().to_dict()
    del values["detach_reset"], values["pool_after"]
    assert sf.ModelConfig.from_dict(values) == sf.ModelConfig()
    del values["depth"]
    with pytest.raises(FieldError) as error:
        sf.ModelConfig.from_dict(values)
    assert error.value.field == "depth"


def test_an_unknown_field_is_answered_with_the_nearest() -> None:
    with field_error("time_step", "'time_steps'"):
        sf.ModelConfig().override(time_step=4)
    with field_error("qwertyuiop", "image_size", "depth"):
        sf.ModelConfig.from_dict({"qwertyuiop": 1})


def test_a_config_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        sf.ModelConfig().depth = 3


@pytest.mark.parametrize("name", sf.list_models())
def test_every_published_model_is_far_from_the_limit(name: str) -> None:
    config = get_preset(name).config
    assert config.largest_activation * 10 < 2**28


def test_the_largest_activation_is_that_of_its_largest_layer() -> None:
    config = sf.ModelConfig()  # 32×32, widths 48 to 384 with pools after the third and fourth, T = 4
    assert config.largest_activation == 4 * 192 * 32 * 32
    assert config.override(mlp_ratio=16.0).largest_activation == 4 * 64 * 384 * 16
    assert config.override(image_size=128, attention="softmax").largest_activation == 4 * 12 * 1024**2
