"""Training and evaluation."""

from spikformer.training.loop import Accuracy, Epoch, measure_accuracy, train

__all__ = ["Accuracy", "Epoch", "measure_accuracy", "train"]
