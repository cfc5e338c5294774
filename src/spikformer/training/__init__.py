"""Training: a recipe says how, a trainer does it, a run folder keeps what comes out."""

from spikformer.training.devices import build_fabric
from spikformer.training.evaluation import Evaluation, Reading, evaluate, evaluate_answers, is_silent
from spikformer.training.events import DivergedError, Epoch, Step
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import get_recipe, list_recipes
from spikformer.training.run_folder import RunFolder
from spikformer.training.trainer import Trainer
from spikformer.training.transfer import transfer_weights
from spikformer.training.traps import find_traps

__all__ = [
    "DivergedError",
    "Epoch",
    "Evaluation",
    "Reading",
    "Recipe",
    "RunFolder",
    "Step",
    "Trainer",
    "build_fabric",
    "evaluate",
    "evaluate_answers",
    "find_traps",
    "get_recipe",
    "is_silent",
    "list_recipes",
    "transfer_weights",
]
