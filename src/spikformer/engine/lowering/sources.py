"""Where programs come from: a trained PyTorch model, or a weights file, which is read without torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spikformer.card import read_card
from spikformer.engine.file import Compiled
from spikformer.engine.lowering import Arrays, config_of, lower
from spikformer.tensorfile import WEIGHTS_FORMAT, WEIGHTS_VERSION, TensorFile, open_tensors

if TYPE_CHECKING:
    from torch import Tensor

    from spikformer.models import SpikingNetwork


def from_model(model: SpikingNetwork) -> Compiled:
    """The program of a model in eval mode; parts that its config does not build raise ValueError."""
    from spikformer.models.inspection import check_as_configured, unwrap

    model = unwrap(model, "compile_engine")
    if model.training:
        raise ValueError("The engine compiles a model for inference; call model.eval() first.")
    check_as_configured(model, "compile_engine")
    arrays = {name: _as_array(tensor) for name, tensor in model.state_dict().items()}
    return Compiled(lower(model.config, Arrays(arrays)), model.config, model.card)


def _as_array(tensor: Tensor) -> np.ndarray:
    tensor = tensor.detach().cpu()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()  # NumPy has no bfloat16


def from_weights(path: str | os.PathLike[str]) -> Compiled:
    """The program of a file that `sf.save` wrote: the same bits as of the model that `sf.load` makes of it."""
    path = Path(path)
    with open_tensors(path) as file:
        file.check_kind(WEIGHTS_FORMAT, WEIGHTS_VERSION)
        fields = file.json("config", dict)
        try:
            config = config_of(file.metadata.get("architecture", "spikformer"), fields)
            arrays = Arrays({name: _read(file, name) for name in file.entries})
            return Compiled(lower(config, arrays), config, read_card(file.metadata, config))
        except ValueError as error:
            raise ValueError(f"{path} cannot become an engine: {error}") from None


def _read(file: TensorFile, name: str) -> np.ndarray:
    entry = file.entries[name]
    if entry.dtype != "BF16":
        return file.read_numpy(name)
    halves = np.empty(entry.shape, np.uint16)  # NumPy has no bfloat16: the upper half of a float32
    file.read_into(name, halves)
    return (halves.astype(np.uint32) << 16).view(np.float32)
