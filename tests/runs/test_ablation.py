"""The grid over a recipe's own settings, trained for real."""

from pathlib import Path

import pytest
from tests.mistakes import field_error, file_error

from spikformer.runs.ablation import ablate
from spikformer.runs.folder import Run
from spikformer.training import get_recipe

SMALL = {"epochs": 1, "max_samples": 64, "model": {"depth": 1, "embed_dim": 16}}


@pytest.mark.slow
def test_settings_of_a_recipe_are_compared_on_validation(tmp_path: Path) -> None:
    rows = ("recipe", "tet", "distillation")
    found = ablate("recipe", seeds=(0,), only=rows, output=tmp_path / "grid", teacher="digits", jobs=2, **SMALL)
    assert [line.variant.name for line in found.lines] == list(rows)
    assert found.split == "validation"
    made = {name: Run(tmp_path / "grid" / name / "seed_0") for name in rows}
    assert {name: run.recipe.loss for name, run in made.items()} == dict.fromkeys(rows, "mean_logit") | {"tet": "tet"}
    assert [run.recipe.distillation for run in made.values()] == [0, 0, 0.5]
    assert [run.description.teacher is not None for run in made.values()] == [False, False, True]
    assert all(line.figure("seconds") and line.figure("last_validation_accuracy") for line in found.lines)
    assert found.to_dict()["variants"][1]["settings"] == {"loss": "tet"}
    again = ablate("recipe", seeds=(0,), only=rows, output=tmp_path / "grid", teacher="digits", **SMALL)
    assert again.to_dict() == found.to_dict()
    with file_error(tmp_path / "grid", "unfit", "teacher"):
        ablate("recipe", seeds=(0,), only=("recipe",), output=tmp_path / "grid", **SMALL)


def test_a_recipe_that_is_taught_needs_a_teacher(tmp_path: Path) -> None:
    with field_error("teacher"):
        ablate("attention", seeds=(0,), output=tmp_path / "grid", distillation=0.5, **SMALL)
    with pytest.raises(FileNotFoundError):
        ablate("recipe", seeds=(0,), output=tmp_path / "grid", teacher=tmp_path / "none.safetensors", **SMALL)
    assert not (tmp_path / "grid").exists()


@pytest.mark.parametrize("grid", ["attention", "architecture", "neuron"])
@pytest.mark.parametrize("recipe", ["maxformer_tiny_digits", "sew_resnet_small_cifar10"])
def test_the_papers_grids_start_from_a_spikformer(grid: str, recipe: str, tmp_path: Path) -> None:
    with field_error("config", "Spikformer", get_recipe(recipe).model.title):
        ablate(grid, recipe, seeds=(0,), output=tmp_path / "grid")
    assert not (tmp_path / "grid").exists()
