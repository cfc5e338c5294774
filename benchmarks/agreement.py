"""How far the engine agrees with the model it was compiled from: a part of bench_engine.py and bench_family.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def measure_agreement(weights: Path, data: Path | None, threads: int, count: int) -> dict[str, float]:
    """The engine's answers and spikes against the model's, on test images."""
    import numpy as np
    import torch

    import spikformer as sf
    from spikformer.runs.measure import prepared_batches
    from spikformer.runs.trained import load_trained, open_data

    torch.set_num_threads(threads)
    model = load_trained(weights)
    engine = sf.compile_engine(model, threads)
    samples = agreeing = whole = differing = neurons = 0
    largest = 0.0
    for images in prepared_batches(open_data(model, data), "test", count, 50):
        with torch.no_grad(), sf.record(model) as seen:
            expected = model(images).numpy()
        answers, wrong = engine(images), 0
        for name, ours in engine.spikes(images).items():
            unequal = by_position(np.asarray(seen.spikes[name]), ours.shape).astype(bool) != ours
            wrong = wrong + unequal.sum((0, 2, 3))
            neurons += unequal.size
        samples += len(answers)
        agreeing += int((answers.argmax(1) == expected.argmax(1)).sum())
        differing += int(np.sum(wrong))
        equal = wrong == 0
        whole += int(equal.sum())
        largest = max([largest, *np.abs(answers - expected)[equal].max(1).tolist()])
    return {
        "samples": samples,
        "same_answer": agreeing / samples,
        "spikes_different": differing / neurons,
        "samples_with_equal_spikes": whole,
        "largest_difference_of_their_logits": largest,
    }


def by_position(spikes: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A model's spikes as the engine has them, [T, B, positions, channels].

    Maps are [T, B, C, H, W] in the model; neurons of the head, and masks that all tokens share, have one position.
    """
    *outer, positions, channels = shape
    if spikes.ndim == 5 and spikes.shape[2] == channels and spikes[0, 0, 0].size == positions:
        return spikes.reshape(*outer, channels, positions).swapaxes(2, 3)
    return spikes.reshape(shape)
