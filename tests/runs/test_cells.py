"""Cells of an ablation: their results, and the settings that must be theirs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.mistakes import file_error, unknown_name

from spikformer.analysis.ablation import CellResult, variants
from spikformer.data import open_dataset
from spikformer.runs.cells import AblationFolder, Cell
from spikformer.runs.writer import RunWriter
from spikformer.training import Recipe, get_recipe


def cell_in(folder: Path, settings: Recipe | None = None) -> Cell:
    return Cell("ssa", 0, folder, "spikformer_tiny_digits", settings or get_recipe("spikformer_tiny_digits"))


def write_result(folder: Path, **changes: object) -> None:
    settings = json.loads(json.dumps(get_recipe("spikformer_tiny_digits").to_dict()))
    result = {"recipe": "spikformer_tiny_digits", "settings": settings, "outcome": "finished", "figures": {"x": 1.0}}
    (folder / "cell.json").write_text(json.dumps(result | changes))


def test_a_result_belongs_to_its_settings(tmp_path: Path) -> None:
    cell = cell_in(tmp_path)
    cell.check_settings()
    assert cell.result() is None
    write_result(tmp_path)
    cell.check_settings()
    assert cell.result() == CellResult("ssa", 0, "finished", {"x": 1.0})
    recipe = cell.settings
    other = cell_in(tmp_path, replace(recipe, epochs=9, model=recipe.model.override(depth=1)))
    with file_error(tmp_path, "unfit", "model.depth 2", "epochs 20"):
        other.check_settings()
    write_result(tmp_path, recipe="spikformer_tiny_digits_dvs")
    with file_error(tmp_path, "unfit", "spikformer_tiny_digits_dvs"):
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
    (tmp_path / "cell.json").write_text(content)
    with file_error(tmp_path / "cell.json"):
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
        with file_error(tmp_path / "cell.json"):
            read()


def test_a_result_is_kept_with_the_settings_of_its_run(tmp_path: Path) -> None:
    cell, recipe = cell_in(tmp_path), get_recipe("spikformer_tiny_digits")
    writer = RunWriter(tmp_path)
    writer.open_new()
    writer.describe(recipe, "spikformer_tiny_digits", None, open_dataset("digits"))
    result = CellResult("ssa", 0, "finished", {"last_test_accuracy": 0.5})
    cell.keep_result(result)
    assert cell.result() == result
    cell.check_settings()


def test_cells_are_chosen_seed_by_seed_and_have_their_variants_settings(tmp_path: Path) -> None:
    recipe = get_recipe("spikformer_tiny_digits")
    rows = variants("neuron", recipe.model, recipe.data_set)
    folder = AblationFolder(tmp_path, "neuron", rows, "spikformer_tiny_digits", recipe, None)
    cells = folder.choose((3, 1, 3), ("if", "plif"))
    assert [(cell.variant, cell.seed) for cell in cells] == [("if", 3), ("plif", 3), ("if", 1), ("plif", 1)]
    assert [(cell.settings.model.neuron, cell.settings.seed) for cell in cells[:2]] == [("if", 3), ("plif", 3)]
    assert folder.begin() == {}
    assert json.loads((tmp_path / "ablation.json").read_text())["grid"] == "neuron"
    with file_error(tmp_path, "unfit", "grid", "'neuron'", "'size'"):
        AblationFolder(tmp_path, "size", rows, "spikformer_tiny_digits", recipe, None).check()
    with unknown_name("variant", "plf", suggestion="plif"):
        folder.choose((0,), ("plf",))
