"""A trained PyTorch model as a program: its arrays, handed to the lowering of its architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spikformer.engine.file import Compiled
from spikformer.engine.lowering import lower
from spikformer.engine.lowering.arrays import Arrays
from spikformer.engine.lowering.spikformer import check_spiking

if TYPE_CHECKING:
    from spikformer.models import Spikformer


def compiled_from(model: Spikformer) -> Compiled:
    """The program of a model in eval mode; parts that its config does not build raise ValueError."""
    from spikformer.models.inspection import check_as_configured, unwrap

    model = unwrap(model, "compile_engine")
    if model.training:
        raise ValueError("The engine compiles a model for inference; call model.eval() first.")
    check_spiking(model.config)
    check_as_configured(model, "compile_engine")
    arrays = {name: tensor.detach().cpu().double().numpy() for name, tensor in model.state_dict().items()}
    return Compiled(lower("spikformer", model.config, Arrays(arrays)), model.config, model.about)
