"""Training and evaluation."""

from spikformer.training.loop import Epoch, evaluate, train

__all__ = ["Epoch", "evaluate", "train"]
