"""What run_engine.c and probe_engine.c do, in Python, with NumPy and without torch.

    run_engine.py ENGINE INPUT OUTPUT MODE BATCH STEPS HEIGHT WIDTH INSTRUCTIONS

Writes `answers`, then `probed`, to OUTPUT.
"""

import sys
from pathlib import Path

import numpy as np

from spikformer.engine.engine import Engine
from spikformer.engine.file import read_compiled
from spikformer.engine.native import MODES


def answers(engine: Engine, x: np.ndarray) -> bytes:
    """Logits, those of each step, and of two steps of a stream."""
    open_size = engine.program.image_size is None
    state = engine.initial_state(x.shape[-4], x.shape[-2:] if open_size else None)
    frames = (x, x) if x.ndim == 4 else (x[0], x[min(1, len(x) - 1)])
    first, state = engine.step(frames[0], state)
    second, _ = engine.step(frames[1], state)
    return b"".join(answer.tobytes() for answer in (engine(x), engine.forward_steps(x), first, second))


def probed(engine: Engine, x: np.ndarray) -> bytes:
    """Spikes and membranes of all neurons; logits and spikes while two ops are changed; logits afterwards."""
    spikes, membranes = engine.spikes(x), engine.membranes(x)
    found = [array for name in spikes for array in (spikes[name], membranes[name])]
    names = list(spikes)
    first, last = names[0], names[-1]
    silence = [0, spikes[first].shape[-1] - 1]
    with engine.intervene(first, silence=silence), engine.intervene(last, noise=0.25, seed=2**53 - 1):
        found += [engine(x), *engine.spikes(x).values()]
    return b"".join(np.ascontiguousarray(array).tobytes() for array in (*found, engine(x)))


def main(path: str, source: str, output: str, mode: str, batch: str, steps: str, *rest: str) -> None:
    height, width, instructions = rest
    engine = Engine(read_compiled(Path(path)), 2, instructions=instructions)
    engine.mode = MODES[int(mode)]
    frames = [int(steps)] if int(steps) else []
    shape = (*frames, int(batch), engine.program.in_channels, int(height), int(width))
    x = np.fromfile(source, np.float32).reshape(shape)
    Path(output).write_bytes(answers(engine, x) + probed(engine, x))
    assert "torch" not in sys.modules


if __name__ == "__main__":
    main(*sys.argv[1:])
