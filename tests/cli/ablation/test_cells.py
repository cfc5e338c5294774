"""Cells: the words that give `train` their settings, and the settings they refuse to be mixed with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from spikformer.analysis.ablation import CellResult, check_grid, variants
from spikformer.cli.ablation.cells import Cell, as_words
from spikformer.cli.train import parse
from spikformer.data import options_of
from spikformer.training import Recipe, get_recipe

NAMES = (
    "spikformer_4_384_cifar10",
    "spikformer_2_256_dvs128",
    "spikformer_8_512_imagenet",
    "transformer_small_cifar10",
)


@pytest.mark.parametrize("grid", ["attention", "time_steps", "neuron", "size"])
@pytest.mark.parametrize("name", NAMES)
def test_train_understands_every_cell_as_it_was_meant(grid: str, name: str) -> None:
    recipe = get_recipe(name)
    events = "time_steps" in options_of(recipe.data_set)
    for row in variants(check_grid(grid), recipe.model, recipe.data_set, events=events):
        wanted = replace(recipe, model=recipe.model.override(**row.overrides), seed=3)
        words = as_words(wanted, recipe)
        assert parse([name, *words]).settings == wanted
        assert len(words) <= 2 * (1 + len(row.overrides)), "what the recipe has is not said again"


def test_settings_of_every_kind_are_understood() -> None:
    recipe = get_recipe("spikformer_4_384_cifar10")
    wanted = replace(
        recipe,
        model=recipe.model.override(
            image_size=(48, 32), pool_stages=(True, True, True), qkv_bias=False, learnable_scale=True, v_reset=-0.5
        ),
        augmentation=replace(
            recipe.augmentation, operations=(), operation_probability=0.5, magnitude=9.0, magnitude_std=0.0
        ),
        mixing_epochs=None,
        clip_gradient=1e-3,
        learning_rate=1e9,
        precision="bfloat16",
        sync_norms=True,
    )
    assert parse(["spikformer_4_384_cifar10", *as_words(wanted, recipe)]).settings == wanted
    back = as_words(recipe, wanted)
    assert {"--model.qkv-bias", "--model.no-learnable-scale", "--no-sync-norms"} <= set(back)
    assert as_words(recipe, recipe) == []


def cell_in(folder: Path, settings: Recipe | None = None) -> Cell:
    return Cell("ssa", 0, folder, "spikformer_tiny_digits", settings or get_recipe("spikformer_tiny_digits"))


def write_result(folder: Path, **changes: object) -> None:
    settings = json.loads(json.dumps(get_recipe("spikformer_tiny_digits").to_dict()))
    result = {"recipe": "spikformer_tiny_digits", "settings": settings, "outcome": "finished", "figures": {"x": 1.0}}
    (folder / "result.json").write_text(json.dumps(result | changes))


def test_a_result_belongs_to_its_settings(tmp_path: Path) -> None:
    cell = cell_in(tmp_path)
    cell.check_settings()
    assert cell.result() is None
    write_result(tmp_path)
    cell.check_settings()
    assert cell.result() == CellResult("ssa", 0, "finished", {"x": 1.0})
    recipe = cell.settings
    other = cell_in(tmp_path, replace(recipe, epochs=9, model=recipe.model.override(depth=1)))
    with pytest.raises(ValueError, match=r"was started with model\.depth 2, epochs 20; ask for the same"):
        other.check_settings()
    write_result(tmp_path, recipe="spikformer_tiny_digits_dvs")
    with pytest.raises(ValueError, match="is a run of spikformer_tiny_digits_dvs, not of spikformer_tiny_digits;"):
        cell.check_settings()


def test_classes_and_channels_are_the_datas(tmp_path: Path) -> None:
    write_result(tmp_path)
    recipe = get_recipe("spikformer_tiny_digits")
    cell = cell_in(tmp_path, replace(recipe, model=recipe.model.override(num_classes=7, in_channels=3)))
    cell.check_settings()
    assert cell.result() is not None, "it is finished, though the recipe was asked for with other ones"


@pytest.mark.parametrize(
    "content", ["", "[1]", "{}", '{"recipe": 1', "[" * 100_000, " " * 9_000_000], ids=lambda x: x[:9]
)
def test_a_damaged_result_is_said(tmp_path: Path, content: str) -> None:
    (tmp_path / "result.json").write_text(content)
    with pytest.raises(ValueError, match=r"result\.json is damaged; remove it"):
        cell_in(tmp_path).result()


@pytest.mark.parametrize(
    "change",
    [
        *({"settings": [1]}, {"settings": None}, {"recipe": 3}, {"outcome": "won"}, {"outcome": []}),
        *({"figures": [1]}, {"figures": {"x": "1"}}, {"figures": {"x": 10**400}}),
    ],
    ids=lambda change: str(change)[:30],
)
def test_a_result_of_another_form_is_said(tmp_path: Path, change: dict[str, object]) -> None:
    write_result(tmp_path, **change)
    for read in (cell_in(tmp_path).result, cell_in(tmp_path).check_settings):
        with pytest.raises(ValueError, match=r"result\.json is damaged; remove it"):
            read()


def test_a_cell_with_a_state_goes_on_and_is_told_no_settings(tmp_path: Path) -> None:
    recipe = get_recipe("spikformer_tiny_digits")
    cell = cell_in(tmp_path, replace(recipe, seed=5))
    begin = cell.command(["--workers", "1"], ["--from", "weights"])
    assert begin[-6:] == ["--workers", "1", "--from", "weights", "--seed", "5"]
    (tmp_path / "state.safetensors").touch()
    assert cell.command(["--workers", "1"], ["--from", "weights"])[-3:] == ["--workers", "1", "--resume"]
