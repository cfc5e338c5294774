"""Training: a recipe says how, a trainer does it and yields what happened."""

from spikformer.training.distributed import build_fabric, choose_device
from spikformer.training.evaluation import EvalOptions, Evaluation, evaluate, evaluate_answers, is_silent
from spikformer.training.progress import DivergedError, Epoch, Iteration
from spikformer.training.recipe import Recipe
from spikformer.training.recipes import get_recipe, list_recipes
from spikformer.training.start import transfer_weights
from spikformer.training.trainer import Trainer

__all__ = [
    "DivergedError",
    "Epoch",
    "EvalOptions",
    "Evaluation",
    "Iteration",
    "Recipe",
    "Trainer",
    "build_fabric",
    "choose_device",
    "evaluate",
    "evaluate_answers",
    "get_recipe",
    "is_silent",
    "list_recipes",
    "transfer_weights",
]
