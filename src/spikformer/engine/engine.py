"""Engine: a compiled network that runs on a plain CPU, event by event, without torch.

    engine = sf.compile_engine(model)
    logits = engine(images)                       NumPy arrays or tensors in, NumPy float32 out
    engine.save("net.engine"); engine = sf.load_engine("net.engine")

A product whose input fires little adds the weights of its events and skips everything else; one that fires much is
computed densely. Which is cheaper is decided for each sample and op by its density. To the last bit, results do not
depend on the batch or the number of threads; against the model they are close. docs/engine.md has the details.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spikformer.card import ModelCard
from spikformer.config import NetworkConfig
from spikformer.engine.anytime import AnytimeAnswers, Confidence, Stepper, answer_anytime, wanted_confidence
from spikformer.engine.autotune import KINDS, density_thresholds
from spikformer.engine.file import read_compiled, write_compiled
from spikformer.engine.inputs import EngineState, as_frame, as_frames, checked_voltages, state_at_rest, take_samples
from spikformer.engine.native import (
    MODES,
    Mode,
    build_engine,
    call_lock,
    checked_threads,
    chosen_instructions,
    usable_threads,
)
from spikformer.engine.predict import Input, Prediction, predict
from spikformer.engine.probes import OpProfile, chosen_neurons, packed_intervention, profile_of
from spikformer.engine.program import Compiled, Program
from spikformer.engine.reference import unpack_spikes
from spikformer.errors import FieldError

if TYPE_CHECKING:
    from spikformer.models import SpikingNetwork


class Engine:
    """A program on this machine. One call runs at a time: other threads that call meanwhile wait, and so does a fork.

    It can be pickled and copied, with `num_threads`, `mode` and a `density_threshold` that was set.
    """

    def __init__(
        self,
        program: Program | Compiled,
        num_threads: int | None = None,
        *,
        instructions: str | None = None,
    ) -> None:
        num_threads = usable_threads() if num_threads is None else checked_threads(num_threads)
        self._compiled = program if isinstance(program, Compiled) else Compiled(program)
        self._native = build_engine(self.program, num_threads, instructions or chosen_instructions())
        self._running = call_lock()

    @property
    def program(self) -> Program:
        return self._compiled.program

    @property
    def config(self) -> NetworkConfig:
        """Of the network that was compiled."""
        if self._compiled.config is None:
            raise AttributeError("This engine was made from a program alone, which has no config.")
        return self._compiled.config

    @property
    def card(self) -> ModelCard:
        return self._compiled.card

    @property
    def instructions(self) -> str:
        """The instruction set in use."""
        return self._native.instructions

    @property
    def num_threads(self) -> int:
        return self._native.num_threads

    @property
    def buffer_bytes(self) -> int:
        """Memory for activations: planned at the first call of a size, and used again by every later one."""
        with self._running:
            return self._native.buffer_bytes

    @property
    def mode(self) -> Mode:
        """`auto` takes the cheaper of `events` and `dense` for each sample and op; the others force one for all.

        The two round differently, and what is cheaper is measured on this machine: force a mode, or set
        `density_threshold`, for answers that are the same bits everywhere.
        """
        return MODES[self._native.mode]

    @mode.setter
    def mode(self, mode: Mode) -> None:
        if mode not in MODES:
            raise FieldError("mode", f"mode must be one of {', '.join(MODES)}, got {mode!r}.")
        with self._running:
            self._native.mode = MODES.index(mode)

    @property
    def density_threshold(self) -> float | None:
        """The density above which a product is computed densely. None: measured on this machine, for each kind of op.

        One that is set holds for all ops, and is saved with the engine.
        """
        return self._compiled.density_threshold

    @density_threshold.setter
    def density_threshold(self, density: float | None) -> None:
        if density is not None and (not isinstance(density, int | float) or not 0 <= density <= 1):
            raise FieldError(
                "density_threshold", f"density_threshold must be a density from 0 to 1, or None, got {density!r}."
            )
        with self._running:
            density = None if density is None else float(density)
            self._compiled = replace(self._compiled, density_threshold=density)

    def __call__(self, x: Any) -> np.ndarray:
        """Logits [B, K] of static images [B, C, H, W] or event frames [T, B, C, H, W]."""
        steps = self.forward_steps(x)
        with np.errstate(over="ignore"):  # of finite numbers, the sum may not be
            return self._finite(steps.mean(0))

    def forward_steps(self, x: Any) -> np.ndarray:
        """The readout [T, B, K] after each step on its own; its mean over steps is the answer."""
        frames = as_frames(x, self.program)
        with self._running:
            return self._run(frames)

    def answer_anytime(self, x: Any, confidence: float) -> AnytimeAnswers:
        """Answers that end at the first step at which they are sure; steps run one by one."""
        frames = as_frames(x, self.program)
        time_steps = self.program.time_steps if frames.ndim == 4 else len(frames)
        stepper = Stepper(
            start=lambda frame: self.initial_state(len(frame), None if self.program.image_size else frame.shape[2:]),
            step=self.step,
            take=lambda state, indices: take_samples(state, indices, self.program),
        )
        return answer_anytime(stepper, frames, time_steps, confidence, self.resting_readout())

    def predict(self, inputs: Input | Iterable[Input], *, confidence: Confidence | None = None) -> list[Prediction]:
        """What pictures or recordings show: files, decoded pictures uint8 [C, H, W] or recordings, one or many.

        With a confidence, or the card's, an answer ends at the first step at which its probability reaches that.
        """
        sure = wanted_confidence(confidence, self.card)
        answer = self.forward_steps if sure is None else lambda x: self.answer_anytime(x, sure)
        return predict(answer, self.resting_readout(), self.card, inputs)

    def resting_readout(self) -> np.ndarray:
        """The readout [K] of a step in which no spike reaches the head."""
        return self.program.read_out.bias.copy()

    def initial_state(self, batch_size: int, image_size: tuple[int, int] | None = None) -> EngineState:
        """Every neuron at rest. `image_size` is needed, and taken, only where the config leaves it open."""
        return state_at_rest(self.program, batch_size, image_size)

    def step(self, x: Any, state: EngineState) -> tuple[np.ndarray, EngineState]:
        """One frame [B, C, H, W] of a stream: its readout [B, K], and the state after it."""
        frame = as_frame(x, self.program)
        before = checked_voltages(state, frame, self._native.state_size(frame.shape[2], frame.shape[3]))
        voltages = np.empty_like(before)
        with self._running:
            logits = self._run(frame[None], before, voltages)
        return logits[0], EngineState(voltages, state.batch_size, state.image_size)

    def spikes(self, x: Any, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """What neurons did, by the name of their op, of all or of those named: bool [T, B, positions, channels]."""
        taps = self._tapped(x, names, membranes=False)
        # [B, positions, T, words] to [T, B, positions, channels]
        return {name: np.moveaxis(unpack_spikes(words, channels), 2, 0) for name, channels, words, _ in taps}

    def membranes(self, x: Any, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
        """The membrane potential H before each reset, of the same neurons: float32 [T, B, positions, channels]."""
        taps = self._tapped(x, names, membranes=True)
        return {name: np.moveaxis(values[..., :channels], 2, 0) for name, channels, _, values in taps}

    def _tapped(self, x: Any, names: Iterable[str] | None, *, membranes: bool) -> list[Any]:
        names = chosen_neurons(self.program, names)
        frames = as_frames(x, self.program)
        with self._running:
            try:
                for name in names:
                    self._native.tap(name, membranes)
                time_steps, batch_size, _ = self._run(frames).shape
                return self._native.take_taps(batch_size, time_steps)
            finally:
                self._native.clear_taps()

    def profile(self, x: Any) -> list[OpProfile]:
        """Run once and say where the time went."""
        frames = as_frames(x, self.program)
        with self._running:
            self._run(frames)
            reports = self._native.reports()
        return [profile_of(report) for report in reports]

    def with_threads(self, num_threads: int) -> Engine:
        """The same program with the same options and another number of threads."""
        engine = Engine(self._compiled, num_threads, instructions=self.instructions)
        engine.mode = self.mode
        return engine

    def save(self, path: str | os.PathLike[str]) -> None:
        """One file for `load_engine`, on any machine with the native core; one that is there is replaced as a whole."""
        write_compiled(self._compiled, path)

    @contextmanager
    def intervene(
        self,
        name: str,
        *,
        silence: Sequence[int] = (),
        replace: np.ndarray | None = None,
        noise: float = 0.0,
        seed: int = 0,
    ) -> Iterator[None]:
        """Within this context, the neurons `name` fire differently; what reads them sees nothing else.

        `silence` lists channels that do not fire. `replace` are other spikes, bool [T, B, positions, channels] as
        `spikes` returns them: calls inside must have as many steps and samples. `noise` is the probability of a spike
        that was not there; it depends on the seed and the place of a neuron in the call alone. Given
        together, they apply in the order replace, silence, noise. Contexts may be nested.
        """
        replaced, kept = packed_intervention(self.program, name, silence, replace, noise)
        with self._running:
            self._native.intervene(name, replaced, kept, noise, seed)
        try:
            yield
        finally:
            with self._running:
                self._native.end_intervention()

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy: the program and the options. Instructions are those of the machine that unpickles it."""
        return _restore, (self._compiled, self.num_threads, self.mode)

    def __repr__(self) -> str:
        threads = f"{self.num_threads} thread{'' if self.num_threads == 1 else 's'}"
        return f"Engine({len(self.program.ops)} ops, T = {self.program.time_steps}, {self.instructions}, {threads})"

    def _run(
        self, frames: np.ndarray, state: np.ndarray | None = None, next_state: np.ndarray | None = None
    ) -> np.ndarray:
        static = frames.ndim == 4
        time_steps = self.program.time_steps if static else frames.shape[0]
        batch_size = frames.shape[0] if static else frames.shape[1]
        logits = np.empty((time_steps, batch_size, self.program.num_classes), np.float32)
        if self.mode == "auto":
            given = self.density_threshold
            thresholds = density_thresholds(self.instructions, time_steps) if given is None else (given,) * len(KINDS)
            self._native.density_thresholds = thresholds
        self._native.run(frames, time_steps, state, next_state, logits)
        return self._finite(logits)

    def _finite(self, logits: np.ndarray) -> np.ndarray:
        if not np.isfinite(logits).all():
            raise FieldError(
                "logits",
                f"The logits of {self!r} are NaN or infinite: its weights are too large for float32. "
                "Compile it again from weights that work.",
            )
        return logits


def compile_engine(source: SpikingNetwork | str | os.PathLike[str], num_threads: int | None = None) -> Engine:
    """Turn a trained model, or what `sf.load` takes, into an engine; the latter without importing torch.

    `num_threads` is by default OMP_NUM_THREADS, else the cores that this process may use.
    """
    from spikformer.engine.lowering import from_model, from_weights

    compiled = from_weights(source) if isinstance(source, str | os.PathLike) else from_model(source)
    return Engine(compiled, num_threads)


def load_engine(path: str | os.PathLike[str], num_threads: int | None = None) -> Engine:
    """The engine in a file that `Engine.save` wrote. Neither loading nor running it imports torch."""
    return Engine(read_compiled(path), num_threads)


def _restore(compiled: Compiled, num_threads: int, mode: Mode) -> Engine:
    engine = Engine(compiled, num_threads)
    engine.mode = mode
    return engine
