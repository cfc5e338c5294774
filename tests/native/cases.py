"""Engine files of every architecture and every op, with inputs and the scalar engine's answers, for other builds."""

import fcntl
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from tests.engine.drawn import draw_floats, program_of_every_op
from tests.engine.drawn_programs import draw_input, draw_program
from tests.native.run_engine import answers, probed

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.engine.engine import Engine, Mode
from spikformer.engine.lowering import from_weights
from spikformer.engine.ops import OP_NAMES
from spikformer.engine.program import Compiled

REPOSITORY = Path(__file__).parents[2]
OK, BAD_ARGUMENT, BAD_FILE, NO_MEMORY = 0, 1, 3, 4  # of spikformer_status
MODES: tuple[Mode, ...] = ("auto", "events", "dense")


@dataclass(frozen=True)
class Case:
    """An engine on disk beside `x`, its input as raw floats."""

    name: str
    engine: Engine
    folder: Path
    x: np.ndarray

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.engine"

    def arguments(self, mode: Mode, output: Path) -> list[str]:
        """Of run_engine.c and its twins."""
        steps = 0 if self.x.ndim == 4 else len(self.x)
        batch_size, _, height, width = self.x.shape[-4:]
        numbers = (MODES.index(mode), batch_size, steps, height, width)
        return [str(self.path), str(self.path.with_suffix(".x")), str(output), *map(str, numbers)]

    def expected(self, mode: Mode) -> bytes:
        """Logits, those of each step, and of two steps of a stream."""
        self.engine.mode = mode
        return answers(self.engine, self.x)

    def probed(self, mode: Mode) -> bytes:
        """Spikes and membranes of all neurons; logits and spikes while two ops are changed; logits afterwards."""
        self.engine.mode = mode
        return probed(self.engine, self.x)

    def lines(self, mode: Mode) -> list[list[str | float]]:
        """Ops with the shape of what they write, then what each product did."""
        self.engine.mode = mode
        program = self.engine.program
        neurons = dict(program.state_ops())
        values = program.values(*self.x.shape[-2:])
        ops = [
            [op.name, OP_NAMES[type(op)], number in neurons, value.channels, value.height, value.width]
            for (number, op), value in zip(enumerate(program.ops, 1), values[1:], strict=True)
        ]
        profile = self.engine.profile(self.x)
        return ops + [[op.name, -1 if op.density is None else op.density, op.dense_share] for op in profile]


NAMES = (
    "every_op",
    "digits",
    "spikformer_tiny_digits",
    "spikformer_tiny_digits_dvs",
    "cml_spikformer_4_256_cifar10",
    "cml_spikingformer_tiny_digits",
    "spikingformer_4_256_cifar10",
    "spike_driven_transformer_2_256_cifar10",
    "maxformer_tiny_digits_dvs",
    "qkformer_4_384_cifar10",
    "ms_qkformer_4_384_cifar10",
    "sew_resnet_small_cifar10",
)
"""Every op, a shipped network, and small presets of every architecture."""
PROBED = NAMES[:4]
"""Those whose neurons are looked at, too: among them one of event frames."""
RANDOM = tuple(f"random{seed}" for seed in range(12))
"""Random programs, which have every op between them."""


def write_case(name: str, folder: Path, batch_size: int = 2) -> Case:
    if name == "every_op":
        compiled = Compiled(program_of_every_op())
        x = draw_floats(np.random.default_rng(1), batch_size, 2, 8, 16)
    elif name.startswith("random"):
        seed = int(name.removeprefix("random"))
        compiled = Compiled(draw_program(seed, rounded=True))
        x = draw_input(compiled.program, seed)
    elif name == "digits":
        compiled = from_weights(name)
        seen = compiled.card.preprocessing
        assert seen is not None
        shape = (batch_size, seen.channels, *seen.size)
        x = seen.to_inputs(np.random.default_rng(1).integers(0, 256, shape, np.uint8))
    else:
        config = shrunk(name)
        compiled = sf.compile_engine(specimen(config, torch.float32), 1)._compiled
        x = frames_for(config, batch_size, torch.float32, seed=3).numpy()
    case = Case(name, Engine(compiled, 1, instructions="scalar"), folder, x)
    case.engine.density_threshold = 0.3  # so that `auto` means the same everywhere
    case.engine.save(case.path)
    case.path.with_suffix(".x").write_bytes(x.tobytes())
    return case


def assert_answers(
    case: Case, command: Sequence[str | Path], modes: Sequence[Mode] = MODES, *, instructions: Sequence[str] = ()
) -> None:
    """What the command writes for a case, after `arguments`, has the bits of the scalar engine."""
    output = case.folder / f"{case.name}.output"
    for mode in modes:
        arguments = [*command, *case.arguments(mode, output), *instructions]
        run = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout + run.stderr
        assert output.read_bytes() == case.expected(mode), (case.name, mode)


def assert_probes(case: Case, command: Sequence[str | Path], mode: Mode, *, answers: bool) -> None:
    """The same of what it says about neurons and ops; with `answers`, it writes those of above before."""
    output = case.folder / f"{case.name}.output"
    run = subprocess.run([*command, *case.arguments(mode, output)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert_probed(case, mode, run.stdout.splitlines(), output.read_bytes(), answers=answers)


def assert_probed(case: Case, mode: Mode, lines: Sequence[str], content: bytes, *, answers: bool) -> None:
    assert content == case.expected(mode) * answers + case.probed(mode), (case.name, mode)
    for line, values in zip(lines, case.lines(mode), strict=True):
        words = zip(line.split(" "), values, strict=True)
        assert [word if isinstance(value, str) else float(word) for word, value in words] == values


def make(target: str) -> Path:
    """A file that `make` builds, once for all workers of a test run."""
    (REPOSITORY / "build").mkdir(exist_ok=True)
    with (REPOSITORY / "build/make.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", "-j2", "-o", ".venv/installed", target]  # -o: reinstalls nothing under other workers
        run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return REPOSITORY / target
