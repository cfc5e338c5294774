"""Attention over an image, as in the paper's figure of examples: bright where a token is looked at, else black."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from spikformer.visualise.mosaic import enlarged, fitted, mosaic, tile_side
from spikformer.visualise.style import house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Black paper that is attended to must not look like paper that is not.
_LIFT = 0.3


@house_style()
def attention_figure(
    picture: np.ndarray, maps: np.ndarray, row_titles: Sequence[str], column_titles: Sequence[str], title: str = ""
) -> Figure:
    """A row of maps after the picture itself: uint8 [H, W, RGB] and [rows, columns, n_h, n_w], none negative.

    Each map is as bright as its own largest value allows; a map without any is black and says "silent".
    """
    _check(picture, maps)
    shown = fitted(picture, tile_side(*picture.shape[:2]))
    tiles = [[shown, *(attended(shown, grid) for grid in row)] for row in maps]
    silent = np.argwhere(~maps.any((-2, -1)))
    figure, axes = mosaic(
        tiles,
        row_titles,
        ["image", *column_titles],
        title,
        f"Attention over an image, {maps.shape[0]} by {maps.shape[1]} maps: bright where tokens are looked at.",
    )
    for row, column in silent:
        axes.text(column + 1, row, "silent", ha="center", va="center", color="#9aa0a6", fontsize=8)
    return figure


def attended(picture: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The picture uint8 [H, W, RGB] as one map [n_h, n_w] lights it: by blocks, exactly black where attention is 0.

    Light grows with the root of attention, so that a little of it is still seen.
    """
    strength = np.sqrt(grid / (grid.max() or 1))
    light = enlarged(strength, *picture.shape[:2])[..., None]
    return np.round(light * (255 * _LIFT + (1 - _LIFT) * picture)).astype(np.uint8)


def received_attention(maps: np.ndarray) -> np.ndarray:
    """How much each token is looked at, [N]: the mean over those that look, and over heads, of maps [h?, N, N]."""
    if maps.ndim not in (2, 3) or maps.shape[-1] != maps.shape[-2]:
        raise ValueError(f"Attention is [N, N] or [heads, N, N], from tokens to tokens, got {list(maps.shape)}.")
    return maps.mean(axis=tuple(range(maps.ndim - 1)))


def to_grid(tokens: np.ndarray, height: int, width: int) -> np.ndarray:
    """Tokens [N] where they lie on the image, [height, width]: row by row, as the stem flattens its map."""
    if tokens.shape != (height * width,):
        raise ValueError(f"A grid of {height}×{width} has {height * width} tokens, got {list(tokens.shape)}.")
    return tokens.reshape(height, width)


def _check(picture: np.ndarray, maps: np.ndarray) -> None:
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or picture.size == 0:
        raise ValueError(f"The picture is uint8 [H, W, 3], got {picture.dtype} {list(picture.shape)}.")
    if maps.ndim != 4 or maps.size == 0:
        raise ValueError(f"Maps are [rows, columns, n_h, n_w], one at least, got {list(maps.shape)}.")
    if not (maps >= 0).all() or np.isinf(maps).any():
        raise ValueError(
            "Maps are finite and not negative; "
            f"these go from {maps.min():g} to {maps.max():g}. Take the absolute value of a map with a sign."
        )
