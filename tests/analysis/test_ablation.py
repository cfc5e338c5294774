"""Grids of ablations: valid for every model, true to the paper's tables, and honest about what came out."""

from dataclasses import fields

import pytest
from tests.mistakes import field_error, unknown_name

from spikformer.analysis.ablation import CellResult, Spread, Variant, check_grid, summarise, variants, varied_fields
from spikformer.config import ModelConfig
from spikformer.presets import get_preset, list_models

GRIDS = ("attention", "time_steps", "neuron", "size")
CIFAR10 = get_preset("spikformer_4_384_cifar10").config
CIFAR100 = get_preset("spikformer_4_384_cifar100").config
IMAGENET = get_preset("spikformer_8_512_imagenet").config
CIFAR10_DVS = get_preset("spikformer_2_256_cifar10dvs").config
DVS128 = get_preset("spikformer_2_256_dvs128").config
DIGITS = get_preset("spikformer_tiny_digits").config

# As the paper prints them: accuracy / OPs in millions / µJ on CIFAR10-DVS, CIFAR-10, CIFAR-100.
TABLE_1 = {
    "identity": ("79.40/16.8/77", "93.96/6.3/29", "76.94/6.3/29"),
    "leaky_relu": ("79.80/16.8/77", "93.85/6.3/29", "76.73/6.3/29"),
    "relu": ("79.40/16.8/77", "94.34/6.3/29", "77.00/6.3/29"),
    "softmax": ("80.00/19.1/88", "94.97/6.6/30", "77.92/6.6/30"),
    "ssa": ("80.90/0.66/0.594", "95.19/1.1/0.990", "77.86/1.3/1.170"),
}


def names(grid: str, config: ModelConfig, data_set: str, *, events: bool = False) -> list[str]:
    return [variant.name for variant in variants(check_grid(grid), config, data_set, events=events)]


def accuracies(grid: str, config: ModelConfig, data_set: str, *, events: bool = False) -> dict[str, float | None]:
    """What the paper has, by variant."""
    found = variants(check_grid(grid), config, data_set, events=events)
    return {variant.name: variant.paper.accuracy_percent for variant in found if variant.paper is not None}


SPIKFORMERS = [name for name in list_models() if isinstance(get_preset(name).config, ModelConfig)]


@pytest.mark.parametrize("grid", [*GRIDS, "architecture"])
def test_the_grids_are_those_of_spikformer(grid: str) -> None:
    config = get_preset("spikingformer_4_384_cifar10").config
    with field_error("config", "Spikingformer"):
        variants(check_grid(grid), config, "cifar10")


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("model", SPIKFORMERS)
def test_every_variant_of_every_model_is_one_and_they_differ(grid: str, model: str) -> None:
    config = get_preset(model).config
    data_set = model.rpartition("_")[2]
    found = variants(check_grid(grid), config, data_set, events=config.in_channels == 2)
    made = [config.override(**variant.overrides) for variant in found]
    assert len(set(made)) == len(made) >= 3
    if not model.startswith("transformer"):  # a twin is a variant of neither neuron nor attention
        own = {"attention": "ssa", "neuron": "lif", "time_steps": str(config.time_steps)}
        name = own.get(grid, f"{config.depth}-{config.embed_dim}")
        assert dict(zip([variant.name for variant in found], made, strict=True))[name] == config


@pytest.mark.parametrize("grid", GRIDS)
def test_nothing_else_varies(grid: str) -> None:
    allowed = {"size": {"depth", "embed_dim", "num_heads"}}.get(grid, {grid})
    for variant in variants(check_grid(grid), CIFAR10, "cifar10"):
        changed = CIFAR10.override(**variant.overrides)
        differs = {
            field.name for field in fields(CIFAR10) if getattr(CIFAR10, field.name) != getattr(changed, field.name)
        }
        assert differs <= allowed


def test_architectures_are_whole_configs_of_their_own() -> None:
    rows = variants("architecture", DIGITS, "digits")
    made = [row.applied_to(CIFAR10) for row in rows]
    assert made == [row.config for row in rows]
    assert len({type(config) for config in made}) == 8
    assert all(row.overrides == {} and row.paper is None for row in rows)
    assert varied_fields("architecture") == ("attention", "pool_after")


def test_fields_without_effect_under_a_variant_are_put_back() -> None:
    made = {row.name: DVS128.override(**row.overrides) for row in variants("attention", DVS128, "dvs128", events=True)}
    assert [name for name, config in made.items() if config.learnable_scale] == [
        "ssa",
        "identity",
        "relu",
        "leaky_relu",
        "random",
    ]
    assert [name for name, config in made.items() if config.qk_pool == 1] == ["none"]
    slow = CIFAR10.override(tau=3.0)
    taus = {row.name: slow.override(**row.overrides).tau for row in variants("neuron", slow, "cifar10")}
    assert taus == {"lif": 3.0, "if": 2.0, "plif": 3.0}


def test_the_controls_are_among_the_attentions() -> None:
    assert names("attention", DIGITS, "digits")[-2:] == ["none", "random"]


def test_time_steps_of_images_are_the_papers_and_of_events_no_more_than_the_recipes() -> None:
    assert names("time_steps", DIGITS, "digits") == ["1", "2", "4", "6"]
    assert names("time_steps", CIFAR10_DVS, "cifar10dvs", events=True) == ["4", "8", "10", "16"]
    assert names("time_steps", CIFAR10_DVS.override(time_steps=8), "cifar10dvs", events=True) == ["2", "4", "8"]
    assert names("time_steps", DVS128.override(time_steps=2), "event_folder", events=True) == ["1", "2"]


def test_sizes_are_the_papers_for_its_models_and_halves_for_others() -> None:
    assert names("size", CIFAR10, "cifar10") == ["4-256", "2-384", "4-384"]
    assert names("size", IMAGENET, "imagenet") == ["8-384", "6-512", "8-512", "10-512", "8-768"]
    assert [row.overrides["num_heads"] for row in variants("size", IMAGENET, "imagenet")] == [8, 8, 8, 8, 12]
    assert names("size", DIGITS, "digits") == ["1-32", "2-32", "1-64", "2-64"]
    assert {DIGITS.override(**row.overrides).head_dim for row in variants("size", DIGITS, "digits")} == {16}
    assert names("size", CIFAR10_DVS, "cifar10dvs") == ["1-128", "2-128", "1-256", "2-256"]
    assert names("size", CIFAR10.override(embed_dim=200, num_heads=8), "cifar10") == ["2-200", "4-200"], (
        "100 / 8 is odd"
    )
    lone = DIGITS.override(depth=1, num_heads=1)
    assert [row.overrides["num_heads"] for row in variants("size", lone, "digits")] == [1, 1]


@pytest.mark.parametrize(
    ("column", "config", "data_set"),
    [(0, CIFAR10_DVS, "cifar10dvs"), (1, CIFAR10, "cifar10"), (2, CIFAR100, "cifar100")],
)
def test_table_1(column: int, config: ModelConfig, data_set: str) -> None:
    found = {row.name: row.paper for row in variants("attention", config, data_set, events=column == 0)}
    for name, cells in TABLE_1.items():
        paper = found[name]
        assert paper is not None
        printed = tuple(map(float, cells[column].split("/")))
        ours = (paper.accuracy_percent, paper.attention_operations_millions, paper.attention_energy_uj)
        assert ours == printed
    assert found["none"] is found["random"] is None


def test_table_5_and_the_appendix() -> None:
    assert accuracies("time_steps", CIFAR10, "cifar10") == {"1": 93.51, "2": 93.59, "4": 95.19, "6": 95.34}
    assert accuracies("time_steps", CIFAR100, "cifar100") == {"1": 74.36, "2": 76.28, "4": 77.86, "6": 78.61}
    assert accuracies("time_steps", IMAGENET, "imagenet") == {"1": 70.14, "2": 71.09, "4": 73.38, "6": 73.70}
    assert accuracies("attention", CIFAR10, "cifar10")["softmax_float_value"] == 95.17
    assert accuracies("attention", CIFAR100, "cifar100")["softmax_float_value"] == 78.37
    assert accuracies("attention", IMAGENET, "imagenet") == {
        "ssa": 73.38,
        "softmax": 72.70,
        "softmax_float_value": 73.96,
        "identity": None,
        "relu": None,
        "leaky_relu": None,
    }
    at_once = {"ssa": 93.51, "identity": 92.39, "relu": 92.98, "leaky_relu": 92.88, "softmax": 93.11}
    assert accuracies("attention", CIFAR10.override(time_steps=1), "cifar10") == at_once
    at_once = {"ssa": 74.36, "identity": 74.28, "relu": 74.32, "leaky_relu": 74.31, "softmax": 74.37}
    assert accuracies("attention", CIFAR100.override(time_steps=1), "cifar100") == at_once
    assert accuracies("neuron", CIFAR10, "cifar10") == {"lif": 95.19, "if": 95.33}
    assert accuracies("neuron", CIFAR100, "cifar100") == {"lif": 77.86, "if": 78.14}


def test_events_and_sizes_have_their_rows() -> None:
    assert accuracies("time_steps", CIFAR10_DVS, "cifar10dvs", events=True) == {"10": 78.9, "16": 80.9}
    assert accuracies("time_steps", DVS128, "dvs128", events=True) == {"10": 96.9, "16": 98.3}
    assert accuracies("size", CIFAR100, "cifar100") == {"4-256": 75.96, "2-384": 76.95, "4-384": 77.86}
    largest = variants("size", IMAGENET, "imagenet")[-1].paper
    assert largest is not None
    assert (largest.model, largest.accuracy_percent) == ("Spikformer-8-768", 74.81)
    assert (largest.operations_millions, largest.energy_uj) == (pytest.approx(22090), pytest.approx(21477))


def test_a_smaller_model_is_put_beside_the_one_that_the_paper_has_but_not_beside_another_size() -> None:
    small = get_preset("spikformer_small_cifar10").config
    assert accuracies("neuron", small, "cifar10") == {"lif": 95.19, "if": 95.33}
    papers = [row.paper for row in variants("neuron", small, "cifar10")]
    assert papers[0] is not None
    assert papers[0].model == "Spikformer-4-384"
    assert accuracies("size", small, "cifar10") == {}
    assert accuracies("size", CIFAR10.override(time_steps=2), "cifar10") == {}
    assert accuracies("neuron", CIFAR10.override(image_size=224), "cifar10") == {}, "that is transfer, another table"
    assert accuracies("attention", DIGITS, "digits") == {}


def test_who_may_set_what_varies() -> None:
    assert varied_fields("attention") == ("attention",)
    assert varied_fields("time_steps") == ("time_steps",)
    assert varied_fields("time_steps", events=True) == varied_fields("size") == ()


def test_an_unknown_grid_is_answered_with_the_nearest() -> None:
    with unknown_name("ablation", "atention", suggestion="attention"):
        check_grid("atention")
    with unknown_name("ablation", "x", "attention", "time_steps", "neuron", "size", "architecture"):
        check_grid("x")


def test_seeds_become_a_mean_and_the_deviation_of_a_sample() -> None:
    spread = Spread((0.90, 0.94, 0.95))
    assert spread.mean == pytest.approx(0.93)
    assert spread.std == pytest.approx(0.026457513)
    assert Spread((0.5,)).std is None


def test_what_did_not_finish_is_counted_and_is_in_no_mean() -> None:
    rows = [Variant("b", {}, None), Variant("a", {}, None)]
    cells = [
        CellResult("a", 2, "finished", {"accuracy": 0.8}),
        CellResult("a", 0, "finished", {"accuracy": 0.6}),
        CellResult("a", 1, "diverged"),
        CellResult("a", 3, "failed"),
    ]
    empty, full = summarise(rows, cells)
    assert (empty.variant.name, empty.cells, empty.figure("accuracy")) == ("b", (), None)
    assert [cell.seed for cell in full.cells] == [0, 1, 2, 3]
    assert full.figure("accuracy") == Spread((0.6, 0.8))
    assert full.figure("energy_mj") is None
    assert [full.num_cells(outcome) for outcome in ("finished", "diverged", "failed")] == [2, 1, 1]
