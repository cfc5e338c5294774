"""Every wrong config is refused with a sentence that helps; every right one follows its fields."""

import dataclasses
import json

import pytest

import spikformer as sf
from spikformer.presets import get_preset

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"image_size": 30}, r"divisible by the patch size 4, got 30×30; the nearest size that fits is 32×32"),
        ({"image_size": (32, 33)}, r"got 32×33; the nearest size that fits is 32×32"),
        ({"image_size": "32"}, r"image_size must be"),
        ({"image_size": (32, 32, 3)}, r"image_size must be an int, \(height, width\) or None"),
        ({"image_size": (32, 0)}, r"from 1 to 1,000,000, got \(32, 0\)"),
        ({"image_size": 32.0}, r"image_size must be"),
        ({"embed_dim": 100, "num_heads": 4}, r"embed_dim must be divisible by 8, because 4 patch-splitting blocks"),
        ({"embed_dim": 384, "num_heads": 7}, r"divisible by num_heads, got 7; try (6|8)"),
        ({"embed_dim": 0}, r"embed_dim must be a whole number of at least 1, got 0"),
        ({"depth": -1}, r"depth must be a whole number of at least 1, got -1"),
        ({"depth": True}, r"depth must be a whole number"),
        ({"time_steps": 2.5}, r"time_steps must be a whole number of at least 1, got 2\.5"),
        ({"num_classes": 0}, r"num_classes"),
        ({"in_channels": 0}, r"in_channels"),
        ({"mlp_ratio": 1.001}, r"whole number of units, got 384 × 1\.001"),
        ({"mlp_ratio": -1.0}, r"mlp_ratio must be above 0"),
        ({"pool_stages": ()}, r"pool_stages must list one true or false per patch-splitting block"),
        ({"pool_stages": (1, 0, 1, 0)}, r"pool_stages\[0\] must be True or False, got 1"),
        ({"pool_stages": 4}, r"pool_stages must list"),
        ({"attention": "sofmax"}, r"attention must be one of ssa, identity, .*, got 'sofmax'"),
        ({"attention_scale": 0.0}, r"attention_scale must be above 0, got 0\.0"),
        ({"attention_scale": float("nan")}, r"attention_scale must be a finite number, .* got nan"),
        ({"learnable_scale": 1}, r"learnable_scale must be True or False, got 1"),
        ({"learnable_scale": True, "attention": "softmax"}, r"learnable_scale has no effect with attention='softmax'"),
        ({"qk_pool": 2}, r"qk_pool must be odd"),
        ({"qk_pool": 3, "attention": "none"}, r"qk_pool has no effect with attention='none'"),
        ({"qkv_bias": None}, r"qkv_bias must be True or False"),
        ({"neuron": "LIF"}, r"neuron must be one of lif, if, plif, relu, gelu, got 'LIF'"),
        ({"tau": 0.5}, r"tau must be at least 1, got 0\.5"),
        ({"tau": 1.0, "neuron": "plif"}, r"tau must be above 1 for plif, got 1\.0"),
        ({"tau": "2"}, r"tau must be a finite number, .* got '2'"),
        ({"v_threshold": -1.0}, r"v_threshold must be above v_reset \(0\.0\), got -1\.0"),
        ({"v_reset": None}, r"soft reset is not supported yet"),
        ({"v_reset": 0.75}, r"attention_v_threshold must be above v_reset \(0\.75\), got 0\.5"),
        ({"tau": 3.0, "neuron": "if"}, r"tau has no effect with neuron='if'; leave it 2\.0"),
        ({"v_threshold": 2.0, "neuron": "relu"}, r"v_threshold has no effect with neuron='relu'"),
        ({"surrogate": "arctan", "neuron": "gelu"}, r"surrogate has no effect with neuron='gelu'; leave it 'sigmoid'"),
        ({"surrogate": "relu"}, r"surrogate must be one of sigmoid, arctan"),
        ({"surrogate_alpha": 0}, r"surrogate_alpha must be above 0"),
        ({"time_steps": 10**6}, r"at most 268,435,456, got 196,608,000,000; take fewer time steps"),
        ({"image_size": 8192}, r"time_steps × the size of the largest layer must be at most"),
        ({"image_size": 1024, "attention": "softmax"}, r"time_steps × the size of the largest layer must be at most"),
        ({"num_classes": 10**6, "time_steps": 1000}, r"time_steps × the size of the largest layer must be at most"),
        ({"depth": 10**5000}, r"depth must be at most 1,000,000, got a number of 16,610 bits"),
        ({"neuron": "\x1b" * 1000}, r"gelu, got '(\\x1b)+"),
        ({"pool_stages": (True,) * 21}, r"pool_stages must list .*, 1 to 20 of them"),
        ({"linear_init": "xavier"}, r"linear_init must be one of trunc_normal, torch"),
    ],
)
def test_a_wrong_field_is_refused(fields: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        sf.ModelConfig(**fields)


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


def test_an_unknown_field_is_answered_with_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"no field 'time_step'; did you mean 'time_steps'\?"):
        sf.ModelConfig().override(time_step=4)
    with pytest.raises(ValueError, match=r"no field 'qwertyuiop'; known fields are image_size"):
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


def test_a_far_name_is_not_suggested() -> None:
    with pytest.raises(ValueError, match=r"no field 'detach_reset'; known fields are"):
        sf.ModelConfig().override(detach_reset=True)
