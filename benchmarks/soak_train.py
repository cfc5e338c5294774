"""Kill the real `spikformer train` command at random moments, resume it, and compare the end with an undisturbed run.

    python benchmarks/soak_train.py --kills 100 --seconds 1200

A kill is SIGKILL, or one of the signals that ask a run to save (SIGTERM, SIGINT, SIGHUP). Its moment is drawn from six
phases, each recognised by the files of the run folder, and then a random while: starting (imports, data), preparing,
an iteration, a save, validation, and the end (testing, drawing). Runs are resumed as a user would: with --resume where
there is a state, as a new start elsewhere. Every finished run must have the weights and metrics of the first, bit for
bit. Prints a table, then one JSON line; exit code 1 if anything differed or failed.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

EPOCHS = 2
STEPS = 20  # iterations of an epoch of digits, in batches of 64
SMALL = ["--epochs", str(EPOCHS), "--save-minutes", "0", "--model.depth", "1", "--model.embed-dim", "16"]
COMMAND = [str(Path(sys.executable).with_name("spikformer")), "train", *SMALL]
SIGNALS = [signal.SIGKILL] * 3 + [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
PATIENCE = 300.0  # seconds for one life of a run


def started(folder: Path) -> subprocess.Popen[str]:
    resume = ["--resume"] if (folder / "state.safetensors").exists() else []
    words = [*COMMAND, "--output", str(folder), *resume]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def position(folder: Path) -> tuple[int, int]:
    """Finished epochs, and iterations of the present one, as the saved state has them; (-1, 0) without a state."""
    try:
        with (folder / "state.safetensors").open("rb") as file:
            return _position(file.fileno(), os.fstat(file.fileno()).st_mtime_ns)
    except OSError:
        return -1, 0


@lru_cache(1)  # of one state; it is asked for again and again
def _position(file: int, _: int) -> tuple[int, int]:
    header = json.loads(os.pread(file, int.from_bytes(os.pread(file, 8, 0), "little"), 8))
    progress = json.loads(header["__metadata__"]["progress"])
    return progress["epoch"], progress["batch"]


def is_saving(folder: Path) -> bool:
    """Whether a file is half written: it has a hidden name until it is whole."""
    return any(path.name != ".claim" for path in folder.glob(".*"))


PHASES: dict[str, Callable[[Path], bool]] = {
    "starting": lambda folder: True,
    "preparing": lambda folder: (folder / ".claim").exists(),
    "iteration": lambda folder: position(folder)[0] >= 0 and (folder / ".claim").exists(),
    "saving": is_saving,
    "validation": lambda folder: position(folder)[1] == STEPS,
    "ending": lambda folder: position(folder)[0] == EPOCHS and (folder / ".claim").exists(),
}
WHILES = {"starting": 4.0, "preparing": 0.2, "iteration": 1.5, "saving": 0.002, "validation": 0.05, "ending": 0.8}
"""How long after its beginning a phase may be interrupted, in seconds."""


def disturb(folder: Path, phase: str, number: signal.Signals, delay: float) -> tuple[bool, int, str]:
    """One life of a run: whether the signal reached it, its exit code, and its error output."""
    process = started(folder)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and not PHASES[phase](folder) and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(delay)
    reached = process.poll() is None
    if reached:
        process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        _, errors = process.communicate()
        return reached, 124, f"it did not end within {PATIENCE:.0f} s of {number.name}\n{errors}"
    return reached, process.returncode, errors


def digest(folder: Path) -> dict[str, str]:
    """What must be equal: every tensor of the weights, and every metric that is not a time."""
    from safetensors.numpy import load_file

    found = {}
    for name in ("last", "best"):
        tensors = load_file(folder / f"{name}.safetensors")
        content = b"".join(key.encode() + tensors[key].tobytes() for key in sorted(tensors))
        found[name] = hashlib.sha256(content).hexdigest()
    rows = list(csv.DictReader((folder / "metrics.csv").read_text().splitlines()))
    kept = [{key: row[key] for key in sorted(row) if key not in ("seconds", "samples_per_second")} for row in rows]
    found["metrics"] = hashlib.sha256(json.dumps(kept).encode()).hexdigest()
    return found


def soak(kills: int, seconds: float, seed: int, root: Path) -> dict[str, object]:
    generator = random.Random(seed)
    began = time.monotonic()
    whole = root / "whole"
    _, code, errors = disturb(whole, "ending", signal.SIGCONT, 0.0)
    if code:
        raise SystemExit(f"The undisturbed run failed:\n{errors}")
    expected = digest(whole)
    landed: Counter[tuple[str, str]] = Counter()
    finished = tracebacks = 0
    problems: list[str] = []
    while landed.total() < kills and time.monotonic() - began < seconds and not problems:
        folder = root / f"run_{finished}"
        phase, number = generator.choice(list(PHASES)), generator.choice(SIGNALS)
        reached, code, errors = disturb(folder, phase, number, generator.uniform(0.0, WHILES[phase]))
        landed[phase, number.name] += reached
        tracebacks += "Traceback" in errors and number != signal.SIGINT
        if code == 0:
            finished += 1
            problems += compare(folder, expected)
        elif not reached or code not in (1, -number):
            problems.append(f"{folder.name}, {number.name} while {phase}: exit code {code}\n{errors}")
    folder = root / f"run_{finished}"
    if not problems and folder.exists():
        _, code, errors = disturb(folder, "ending", signal.SIGCONT, 0.0)
        finished += 1
        problems += [f"{folder.name}: exit code {code}\n{errors}"] if code else compare(folder, expected)
    show(landed)
    return {
        "kills": landed.total(),
        "by_phase": dict(Counter(phase for phase, _ in landed.elements())),
        "by_signal": dict(Counter(name for _, name in landed.elements())),
        "finished_runs": finished,
        "tracebacks": tracebacks,
        "problems": problems,
        "seconds": round(time.monotonic() - began),
    }


def compare(folder: Path, expected: dict[str, str]) -> list[str]:
    found = digest(folder)
    wrong = [name for name in expected if found[name] != expected[name]]
    shutil.rmtree(folder)
    return [f"{folder.name} ended with other {', '.join(wrong)}"] if wrong else []


def show(landed: Counter[tuple[str, str]]) -> None:
    names = sorted({number.name for number in SIGNALS})
    print("| phase | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for phase in PHASES:
        print(f"| {phase} | " + " | ".join(str(landed[phase, name]) for name in names) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1200.0, help="no kill after so many")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        found = soak(options.kills, options.seconds, options.seed, Path(root))
    print(json.dumps(found))
    return 1 if found["problems"] or found["tracebacks"] else 0


if __name__ == "__main__":
    sys.exit(main())
