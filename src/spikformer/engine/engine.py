"""Engine: a compiled Spikformer that runs on a plain CPU, event by event, without torch.

    engine = sf.compile_engine(model)
    logits = engine(images)                       NumPy arrays or tensors in, NumPy float32 out
    engine.save("net.engine"); engine = sf.load_engine("net.engine")

A layer whose input fires little adds the weights of its events and skips everything else; one that fires much is
multiplied out. Which is cheaper is decided for each sample and layer by its measured density. To the last bit, results
do not depend on the batch or the number of threads; against the model they are close. docs/engine.md has the details.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spikformer.card import ModelCard
from spikformer.config import ModelConfig
from spikformer.engine.calibration import crossover_of
from spikformer.engine.files import read_plan, write_plan
from spikformer.engine.inputs import as_frame, as_frames
from spikformer.engine.native import MOST_THREADS, build_network, call_lock, chosen_instructions, usable_threads
from spikformer.engine.plan import Plan
from spikformer.engine.predict import Input, Prediction, predict
from spikformer.engine.reference import unpack_spikes

if TYPE_CHECKING:
    from spikformer.models import Spikformer

Way = Literal["measured", "events", "dense"]
_WAYS: tuple[Way, ...] = ("measured", "events", "dense")


@dataclass(frozen=True)
class EngineState:
    """The voltage of every neuron between two steps of a stream; in an order of the engine's own."""

    voltages: np.ndarray
    batch_size: int
    image_size: tuple[int, int]


@dataclass(frozen=True)
class LayerProfile:
    """What one layer did in a call. Q, K and V of a block share their input and count as one."""

    name: str
    list_ms: float
    """Counting the events, and listing them where they are added."""
    product_ms: float
    """Adding or multiplying weights, and the neurons."""
    density: float | None
    """The share of inputs that are not zero, over all steps. None for pixels and for attention's product."""
    dense_share: float
    """Of the samples, those that were multiplied out."""


class Engine:
    """A plan on this machine. One call runs at a time: other threads that call meanwhile wait, and so does a fork.

    It can be pickled and copied, with `num_threads`, `way` and a `crossover` that was set.
    """

    def __init__(self, plan: Plan, num_threads: int | None = None) -> None:
        num_threads = usable_threads() if num_threads is None else num_threads
        if not _is_whole(num_threads) or not 1 <= num_threads <= MOST_THREADS:
            raise ValueError(f"num_threads must be a whole number from 1 to {MOST_THREADS}, got {num_threads!r}.")
        self.plan = plan
        self._network = build_network(plan, int(num_threads), chosen_instructions())
        self._given_crossover: float | None = None
        self._running = call_lock()

    @property
    def config(self) -> ModelConfig:
        return self.plan.config

    @property
    def card(self) -> ModelCard:
        return self.plan.card

    @property
    def instructions(self) -> str:
        """The instruction set in use."""
        return self._network.instructions

    @property
    def num_threads(self) -> int:
        return self._network.num_threads

    @property
    def buffer_bytes(self) -> int:
        """Memory for activations: planned at the first call of a size, and used again by every later one."""
        with self._running:
            return self._network.buffer_bytes

    @property
    def way(self) -> Way:
        """`measured` takes the cheaper way for each sample and layer; `events` and `dense` force one for all.

        The two round differently, and what is measured differs between machines and runs: force a way, or set
        `crossover`, for answers that are the same bits everywhere.
        """
        return _WAYS[self._network.way]

    @way.setter
    def way(self, way: Way) -> None:
        if way not in _WAYS:
            raise ValueError(f"way must be one of {', '.join(_WAYS)}, got {way!r}.")
        with self._running:
            self._network.way = _WAYS.index(way)

    @property
    def crossover(self) -> float:
        """The density above which a layer is multiplied out: measured here, and yours to set.

        A stream has its own, because a step alone shares no weight with others; one that is set is for both.
        """
        return self._crossover_for(self.config.time_steps)

    @crossover.setter
    def crossover(self, density: float) -> None:
        if not isinstance(density, int | float) or not 0 <= density <= 1:
            raise ValueError(f"crossover must be a density from 0 to 1, got {density!r}.")
        with self._running:
            self._given_crossover = float(density)

    def __call__(self, x: Any) -> np.ndarray:
        """Logits [B, K] of still images [B, C, H, W] or event frames [T, B, C, H, W]."""
        steps = self.forward_steps(x)
        with np.errstate(over="ignore"):  # of finite numbers, the sum may not be
            return self._finite(steps.mean(0))

    def forward_steps(self, x: Any) -> np.ndarray:
        """The readout [T, B, K] after each step on its own; its mean over steps is the answer."""
        frames = as_frames(x, self.config)
        with self._running:
            return self._run(frames)

    def predict(self, inputs: Input | Iterable[Input]) -> list[Prediction]:
        """What pictures or recordings show: files, decoded pictures uint8 [C, H, W] or recordings, one or many."""
        return predict(self.forward_steps, self.resting_readout(), self.card, inputs)

    def resting_readout(self) -> np.ndarray:
        """The readout [K] of a step in which no spike reaches the head."""
        return self.plan.head_bias.copy()

    def initial_state(self, batch_size: int, image_size: tuple[int, int] | None = None) -> EngineState:
        """Every neuron at rest. `image_size` is needed, and taken, only where the config leaves it open."""
        if not _is_whole(batch_size) or batch_size < 1:
            raise ValueError(f"batch_size must be a whole number of at least 1, got {batch_size!r}.")
        if (image_size is None) == (self.config.image_size is None):
            given = (
                "leaves image_size open; give initial_state one" if image_size is None else "fixes image_size already"
            )
            raise ValueError(f"This model's config {given}.")
        size = self.config.override(image_size=image_size or self.config.image_size).image_size
        assert size is not None
        voltages = np.full(int(batch_size) * self._network.state_size(*size), self.config.v_reset, dtype=np.float32)
        return EngineState(voltages, int(batch_size), size)

    def step(self, x: Any, state: EngineState) -> tuple[np.ndarray, EngineState]:
        """One frame [B, C, H, W] of a stream: its readout [B, K], and the state after it."""
        frame = as_frame(x, self.config)
        given = (len(frame), (frame.shape[2], frame.shape[3]))
        if not isinstance(state, EngineState) or (state.batch_size, state.image_size) != given:
            raise ValueError(
                "The state does not fit this frame; make one with initial_state(batch_size) and carry it from step to "
                "step."
            )
        before = self._voltages_of(state)
        voltages = np.empty_like(before)
        with self._running:
            logits = self._run(frame[None], before, voltages)
        return logits[0], EngineState(voltages, *given)

    def spikes(self, x: Any) -> dict[str, np.ndarray]:
        """What every neuron did, by layer: [T, B, positions, channels] of bool."""
        frames = as_frames(x, self.config)
        with self._running:
            self._network.recording = True
            try:
                time_steps, batch_size, _ = self._run(frames).shape
                recorded = self._network.recorded(batch_size, time_steps)
            finally:
                self._network.recording = False
        # [B, positions, T, words] to [T, B, positions, channels]
        return {name: np.moveaxis(unpack_spikes(words, channels), 2, 0) for name, channels, words in recorded}

    def profile(self, x: Any) -> list[LayerProfile]:
        """Run once and say where the time went."""
        frames = as_frames(x, self.config)
        with self._running:
            self._run(frames)
            reports = self._network.reports()
        return [_profile_of(report) for report in reports]

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file for `load_engine`, on any machine with the native core; one that is there is replaced as a whole."""
        write_plan(self.plan, path)

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the plan and the options. Instructions are those of the machine that unpickles it."""
        return _restore, (self.plan, self.num_threads, self.way, self._given_crossover)

    def __repr__(self) -> str:
        config = self.config
        return (
            f"Engine(Spikformer-{config.depth}-{config.embed_dim}, T = {config.time_steps}, "
            f"{self.instructions}, {self.num_threads} threads)"
        )

    def _run(
        self, frames: np.ndarray, state: np.ndarray | None = None, next_state: np.ndarray | None = None
    ) -> np.ndarray:
        still = frames.ndim == 4
        time_steps = self.config.time_steps if still else frames.shape[0]
        batch_size = frames.shape[0] if still else frames.shape[1]
        logits = np.empty((time_steps, batch_size, self.config.num_classes), np.float32)
        if self.way == "measured":
            self._network.crossover = self._crossover_for(time_steps)
        self._network.run(frames, time_steps, state, next_state, logits)
        return self._finite(logits)

    def _finite(self, logits: np.ndarray) -> np.ndarray:
        if not np.isfinite(logits).all():
            raise ValueError(
                f"The logits of {self!r} are NaN or infinite: its weights are too large for float32. "
                "Compile it again from weights that work."
            )
        return logits

    def _voltages_of(self, state: EngineState) -> np.ndarray:
        """The state's voltages, checked: any finite number is one."""
        expected = (state.batch_size * self._network.state_size(*state.image_size),)
        voltages = np.asarray(state.voltages)
        if voltages.shape != expected or voltages.dtype != np.float32 or not np.isfinite(voltages).all():
            raise ValueError(
                f"The state must hold {expected[0]} finite float32 voltages, as this engine's initial_state and step "
                "make them."
            )
        return np.ascontiguousarray(voltages)

    def _crossover_for(self, time_steps: int) -> float:
        given = self._given_crossover
        return crossover_of(self.instructions, time_steps) if given is None else given


def compile_engine(model: Spikformer, num_threads: int | None = None) -> Engine:
    """Turn a trained model into an engine.

    `num_threads` is by default OMP_NUM_THREADS, else the cores that this process may use.
    """
    from spikformer.engine.folding import fold

    return Engine(fold(model), num_threads)


def load_engine(path: str | os.PathLike[str], num_threads: int | None = None) -> Engine:
    """The engine in a file that `Engine.save` wrote. Neither loading nor running it imports torch."""
    return Engine(read_plan(path), num_threads)


def _restore(plan: Plan, num_threads: int, way: Way, crossover: float | None) -> Engine:
    engine = Engine(plan, num_threads)
    engine.way = way
    if crossover is not None:
        engine.crossover = crossover
    return engine


def _profile_of(report: dict[str, Any]) -> LayerProfile:
    reads_spikes = report["list_seconds"] > 0
    return LayerProfile(
        name=report["name"],
        list_ms=report["list_seconds"] * 1e3,
        product_ms=report["product_seconds"] * 1e3,
        density=report["additions"] / report["inputs"] if reads_spikes else None,
        dense_share=report["dense_samples"] / report["samples"],
    )


def _is_whole(number: Any) -> bool:
    return isinstance(number, Integral)  # NumPy's are welcome
