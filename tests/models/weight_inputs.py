"""What reaches the weights of a network, for tests that it is spikes."""

import torch
from torch import nn


def weight_inputs(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """What each convolution and linear layer reads, by name."""
    seen: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_hook(lambda _m, inputs, _o, name=name: seen.update({name: inputs[0]}))
    with torch.no_grad():
        model(x)
    return seen
