"""A recipe, data, rows of metrics and states for tests of run folders."""

import os
from pathlib import Path

import spikformer as sf
from spikformer.data import open_dataset
from spikformer.runs.writer import RunWriter
from spikformer.training import get_recipe
from spikformer.training.optim import build_optimiser
from spikformer.training.progress import Progress
from spikformer.training.state import save_state

RECIPE = get_recipe("spikformer_tiny_digits")
DIGITS = open_dataset("digits")
ROWS = [{"epoch": 1, "train_loss": 0.1 + 0.2, "seconds": 1.5}, {"epoch": 2, "train_loss": 1e-9, "seconds": 3.0}]


def names_in(path: Path) -> list[str]:
    """What is there, but for the claim, which lives as long as the folder's object."""
    return sorted(set(os.listdir(path)) - {".claim"})


def keep_state(folder: RunWriter, iteration: int = 0) -> None:
    model = sf.create_model("spikformer_tiny_digits")
    save_state(
        folder.state, RECIPE.to_dict(), Progress(iteration=iteration), model, build_optimiser(model, 0.0), None, None
    )


def describe(folder: RunWriter) -> None:
    folder.describe(RECIPE, "spikformer_tiny_digits", None, DIGITS)
