"""What every architecture offers. Training, analysis, reports and files know this interface and never a class.

Shapes: T steps, B samples, C channels, N tokens, D features, K classes.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from spikformer.card import ModelCard
from spikformer.config import NetworkConfig
from spikformer.errors import FieldError, shown
from spikformer.layers.linear import Linear, by_sample
from spikformer.layers.time import Stream, StreamState, apply_neuron, over_time
from spikformer.models.inputs import check_input, check_state, check_stream
from spikformer.validation import is_integer


class SpikingNetwork(nn.Module):
    """A network for static images, event frames and streams of frames.

    Stateless: every call starts from rest, there is nothing to reset. Streams carry their state outside:

        state = model.initial_state(batch_size)
        for frame in frames:
            logits, state = model.step(frame, state)

    An architecture sets `num_features`, builds its layers, ends with `self.head = self.build_head()`, and says in
    `encode` how frames become tokens. One whose head reads spikes has a `head_neuron`, too.
    """

    config: Any
    """A NetworkConfig, of the architecture's own type."""
    num_features: int
    """D of the tokens that the head reads."""
    head: nn.Module
    head_neuron: nn.Module

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.card = ModelCard(architecture=type(self).__name__.lower())

    @abstractmethod
    def encode(self, frames: Tensor, stream: Stream | None = None, repeats: int = 1) -> Tensor:
        """Frames [T, B, C, H, W] to tokens [T, B, N, D]. One frame with `repeats` T is a static image."""

    def pool(self, tokens: Tensor, stream: Stream | None = None) -> Tensor:
        """Tokens [T, B, N, D] to what the head reads, [T, B, D]: their mean, or spikes of a neuron that reads it."""
        means = over_time(lambda samples: by_sample(lambda x: x.mean(1), samples), tokens)
        return apply_neuron(self.head_neuron, means, stream) if hasattr(self, "head_neuron") else means

    def forward(self, x: Tensor) -> Tensor:
        """Logits [B, K] of static images [B, C, H, W] or event frames [T, B, C, H, W]."""
        return self.forward_steps(x).mean(0)

    def forward_steps(self, x: Tensor) -> Tensor:
        """The readout [T, B, K] after each step on its own; its mean over steps is `forward`."""
        return over_time(self.head, self.pool(self.forward_features(x)))

    def forward_features(self, x: Tensor) -> Tensor:
        """Tokens [T, B, N, D] of the last layer."""
        check_input(x, self.config, self.like)
        static = x.ndim == 4
        frames = x.unsqueeze(0) if static else x  # [T or 1, B, C, H, W]
        return self.encode(frames, repeats=self.config.time_steps if static else 1)

    def initial_state(self, batch_size: int) -> StreamState:
        """Every neuron at rest, for images of any size."""
        if not is_integer(batch_size) or batch_size < 1:
            raise FieldError("batch_size", f"batch_size must be an integer of at least 1, got {shown(batch_size)}.")
        return StreamState(int(batch_size))

    def step(self, x: Tensor, state: StreamState) -> tuple[Tensor, StreamState]:
        """One frame [B, C, H, W] of a stream: its readout [B, K], equal to `forward_steps`, and the state after it."""
        check_stream(x, self.config, self.like, self.training)
        check_state(state, len(x))
        stream = Stream(state)
        tokens = self.encode(x.unsqueeze(0), stream)
        logits = over_time(self.head, self.pool(tokens, stream))
        return logits.squeeze(0), stream.state()

    @property
    def like(self) -> Tensor:
        """A weight: inputs must have its dtype and be on its device. The head is not asked, for it may be replaced."""
        return next(self.parameters())

    @torch.no_grad()
    def resting_readout(self) -> Tensor:
        """The readout [K] of a step in which no spike reaches the head."""
        return self.head(self.like.new_zeros(1, self.num_features))[0]

    def build_head(self) -> nn.Module:
        """A linear layer to the config's classes; without classes the features pass as they are."""
        classes = self.config.num_classes
        return Linear(self.num_features, classes) if classes else nn.Identity()

    def reset_classifier(self, num_classes: int) -> None:
        """A new head for other classes, with fresh weights; 0 makes the model return features [B, D]."""
        self.config = self.config.override(num_classes=num_classes)
        self.head = self.initialise_head(self.build_head()).to(self.like).train(self.training)

    def initialise_head(self, head: nn.Module) -> nn.Module:
        """A head with the weights that a fresh model of this architecture starts with."""
        return truncated_normal(head)

    def no_weight_decay(self) -> set[str]:
        """Names of parameters that weight decay should leave alone: biases, norms, scales and neurons."""
        return {name for name, parameter in self.named_parameters() if parameter.ndim <= 1}


def truncated_normal(layer: nn.Module) -> nn.Module:
    """Truncated normal weights (σ = 0.02) and a zero bias; what is neither linear nor a convolution stays."""
    if isinstance(layer, nn.Linear | nn.Conv2d):
        nn.init.trunc_normal_(layer.weight, std=0.02)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return layer
