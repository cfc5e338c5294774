"""Training and evaluation."""

from spikformer.training.loop import Epoch, accuracy_after_steps, train

__all__ = ["Epoch", "accuracy_after_steps", "train"]
