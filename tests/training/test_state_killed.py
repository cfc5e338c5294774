"""The state of a run, killed while it is written."""

import subprocess
import sys
from pathlib import Path

KILLED = """
import os, resource, signal, sys, time
from pathlib import Path
import torch
import spikformer as sf
from spikformer.training.optim import build_optimiser
from spikformer.training.progress import Progress
from spikformer.training.state import load_state, save_state

torch.set_num_threads(1)
path = Path(sys.argv[1])
model = sf.create_model("spikformer_tiny_digits", embed_dim=192)  # some megabytes, so that writing takes its time
optimiser = build_optimiser(model, 0.0)

def save(step):
    save_state(path, {}, Progress(iteration=step), model, optimiser, None, None)

def child(work):
    process = os.fork()
    if not process:
        work()
        os._exit(0)
    return process

def for_ever():
    step = 1
    while True:
        save(step)
        step += 1

def too_much():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the kernel kills who writes more
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    save(-1)

save(0)
for moment in range(12):
    process = child(for_ever)
    time.sleep(0.003 * moment)
    os.kill(process, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
    assert load_state(path).progress.iteration >= 0
assert os.waitstatus_to_exitcode(os.waitpid(child(too_much), 0)[1]) == -signal.SIGXFSZ
load_state(path).restore(model, optimiser, None)
others = [other.name for other in path.parent.iterdir() if other != path]
assert others and all(name.startswith(".") for name in others), "killed while writing, and only hidden halves stay"
"""


def test_a_kill_in_the_middle_of_a_write_leaves_the_old_state_loadable(tmp_path: Path) -> None:
    """Real processes: killed at a dozen moments, and once for certain between opening the file and finishing it."""
    command = [sys.executable, "-c", KILLED, str(tmp_path / "state.safetensors")]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
