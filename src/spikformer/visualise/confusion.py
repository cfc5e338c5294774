"""The confusion matrix: which class is taken for which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spikformer.visualise.figures import SEQUENTIAL, house_style, new_figure, readable_on, save_figure, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMED = 40  # classes; beyond, names would be too small to read
_NUMBERED = 20


def draw_confusion(confusion: Sequence[Sequence[int]], class_names: Sequence[str], path: Path) -> None:
    """`confusion_figure` as a file."""
    save_figure(confusion_figure(confusion, class_names), path)


@house_style()
def confusion_figure(confusion: Sequence[Sequence[int]], class_names: Sequence[str]) -> Figure:
    """Rows are true classes, columns answers; shade is the share of a row, numbers are samples."""
    from matplotlib import colormaps

    counts = np.array(confusion)
    if counts.shape != (len(class_names), len(class_names)):
        raise ValueError(f"A confusion of {len(class_names)} classes has as many rows and columns, got {counts.shape}.")
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    side = min(4.5 + 0.35 * len(class_names), 14.0)
    figure = new_figure(side, side, "Which class is taken for which.")
    axes = figure.subplots()
    axes.imshow(shares, vmin=0, vmax=1)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("answer")
    axes.set_ylabel("class")
    if len(class_names) <= _NAMED:
        places, names = range(len(class_names)), [shortened(name) for name in class_names]
        axes.set_xticks(places, names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(places, names)
    if len(class_names) <= _NUMBERED:
        for row, column in np.argwhere(counts):
            ink = readable_on(colormaps[SEQUENTIAL](shares[row, column]))
            axes.text(column, row, str(counts[row, column]), ha="center", va="center", color=ink, fontsize=8)
    return figure
