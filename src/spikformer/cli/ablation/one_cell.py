"""One cell of an ablation in a process of its own: `train`, then what its weights cost, then result.json.

    python -m spikformer.cli.ablation.one_cell FOLDER RECIPE [what `train` takes]

`ablate` starts it, with FOLDER/log.txt for its errors. A crash harms no other cell, and a cell whose command is gone
saves and ends.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

LOG = "log.txt"
RESULT = "result.json"
DIVERGED = "no number any more"  # how `train` says that it did not converge
_SAMPLES = 256  # on which energy is measured; firing rates hardly move beyond


def main(arguments: list[str]) -> int:
    """Train and measure; the exit code is that of `train`, but 0 where a result says that it did not converge."""
    from spikformer.cli import main as command

    folder, words = Path(arguments[0]), arguments[1:]
    _stop_when_alone()
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = command(["train", *words, "--output", str(folder), "--json"])
    sys.stderr.flush()
    if code == 0 and printed.getvalue():  # of several processes, the first tells
        _write(folder, "finished", _figures(json.loads(printed.getvalue()), words))
    elif code == 1 and DIVERGED in (folder / LOG).read_text():
        _write(folder, "diverged", {})
        return 0
    return code


def _stop_when_alone() -> None:
    """A command that was killed cannot stop its cells, so they watch it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGTERM)  # which `train` answers by saving

    threading.Thread(target=watch, daemon=True).start()


def _write(folder: Path, outcome: str, figures: dict[str, float]) -> None:
    """The settings go with it, so that a result is never taken for that of other ones."""
    from spikformer.disk import write_atomically
    from spikformer.training import RunFolder

    began = RunFolder(folder).read_description()
    result = {"recipe": began["recipe"], "settings": began["settings"], "outcome": outcome, "figures": figures}
    write_atomically(folder / RESULT, (json.dumps(result, indent=2) + "\n").encode())


def _figures(results: dict[str, Any], words: list[str]) -> dict[str, float]:
    """Shares of right answers on the test split, on the validation split where there is no other; and the cost."""
    figures: dict[str, float] = {"seconds": results["seconds"]}
    for which in ("last", "best"):
        shares = results.get(which, {})
        for split in ("test", "validation"):
            if f"{split}_accuracy" in shares:
                figures[f"{which}_{split}_accuracy"] = shares[f"{split}_accuracy"]
    weights = results.get("best", results["last"])["weights"]
    return figures | measure_cost(Path(weights), words)


def measure_cost(weights: Path, words: list[str]) -> dict[str, float]:
    """Parameters, and operations and energy of one sample by the paper's convention.

    Those of attention are of one block, as the paper's Tab. 1 has them; a network without any has none.
    """
    from spikformer.analysis.energy import measure_energy
    from spikformer.cli.samples import Measured, batches, open_measured
    from spikformer.cli.train import parse

    options = parse([word for word in words if word != "--resume"])  # for where the data are, and the device
    chosen = Measured(data=options.data, accelerator=options.accelerator, split="train")
    model, data = open_measured(weights, chosen)
    split = next(name for name in ("test", "validation", "train") if name in data.splits)
    report = measure_energy(model, batches(model, data, split, _SAMPLES, chosen.batch_size))
    attention = [layer.operations("paper") for layer in report.layers if layer.kind == "attention"]
    blocks = max(1, len(attention))
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "operations": sum(report.operations("paper")),
        "energy_mj": report.energy_mj("paper"),
        "attention_operations": sum(map(sum, attention)) / blocks,
        "attention_energy_mj": sum(map(report.energy_pj, attention)) / blocks / 1e9,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
