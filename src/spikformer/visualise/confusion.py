"""The confusion matrix: which class is taken for which."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spikformer.disk import write_atomically

_NAMED = 40  # classes; beyond, names would be too small to read
_NUMBERED = 20


def draw_confusion(confusion: Sequence[Sequence[int]], class_names: Sequence[str], path: Path) -> None:
    """Rows are true classes, columns answers; shade is the share of a row, numbers are samples."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = np.array(confusion)
    if counts.shape != (len(class_names), len(class_names)):
        raise ValueError(f"A confusion of {len(class_names)} classes has as many rows and columns, got {counts.shape}.")
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(4.5 + 0.35 * len(class_names), 14.0)
    figure = Figure(figsize=(side, side), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    axes.set_xlabel("answer")
    axes.set_ylabel("class")
    if len(class_names) <= _NAMED:
        places = range(len(class_names))
        axes.set_xticks(places, class_names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(places, class_names)
    if len(class_names) <= _NUMBERED:
        for row, column in np.argwhere(counts):
            ink = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, str(counts[row, column]), ha="center", va="center", color=ink, fontsize=8)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.removeprefix(".") or "png")
    write_atomically(path, content.getvalue())
