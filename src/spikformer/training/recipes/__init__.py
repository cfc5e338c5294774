"""Every published recipe, and small ones of our own, under the name of the preset it trains.

    spikformer train spikformer_4_384_cifar10 --data DIR
    spikformer models --recipes                             lists them

A model that is trained in several ways has a recipe for each, with a suffix (_400e, _t10, _transfer). One file a
family; each function says whose recipe it is, and which of its numbers are ours, because nobody printed them. The
authors of the successors train with automatic mixed precision, but for the Spike-driven Transformer on CIFAR; here
`precision` is the machine's choice, and float32 by default. Epochs are selected on a validation split, not on the test
split as theirs.
"""

from spikformer.training.recipes import (
    maxformer,
    qkformer,
    sew_resnet,
    spike_driven_transformer,
    spikformer,
    spikingformer,
)
from spikformer.training.recipes.registry import (
    get_recipe,
    list_recipes,
    pretrained_on,
    recipe_summary,
    recipe_warnings,
    register,
)

DEFAULT = "spikformer_tiny_digits"

for _family in (spikformer, spikingformer, spike_driven_transformer, qkformer, maxformer, sew_resnet):
    register(_family.ROWS)

__all__ = ["DEFAULT", "get_recipe", "list_recipes", "pretrained_on", "recipe_summary", "recipe_warnings"]
