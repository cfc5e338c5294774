"""Run by test_distributed under torchrun: what each process computes, written down by the first."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from spikformer.data import open_dataset
from spikformer.training import DivergedError, Trainer, build_fabric, get_recipe
from spikformer.training.distributed import shut_down
from spikformer.training.state import SavedState, load_state

torch.set_num_threads(1)
sync_norms, output = sys.argv[1] == "synced", Path(sys.argv[2])
data = open_dataset("digits")
data = replace(data, train=data.train.take(np.arange(128)), test=data.test.take(np.arange(37)))
name = "cml_spikingformer_tiny_digits" if "successor" in sys.argv else "spikformer_tiny_digits"
recipe = replace(get_recipe(name), epochs=1, sync_norms=sync_norms, clip_gradient=None)
if "tet" in sys.argv:
    recipe = replace(recipe, loss="tet", optimiser="muon", accumulate=2)
fabric = build_fabric(accelerator="cpu")


def make_trainer(saved: SavedState | None = None) -> Trainer:
    trainer = Trainer(recipe, data, fabric, state_path=output / "state.safetensors")
    trainer.model.double()
    trainer.start(saved)
    return trainer


def main() -> None:
    trainer = make_trainer()
    gradients: dict[str, torch.Tensor] = {}

    def keep(*_: object) -> None:
        if not gradients:
            gradients.update({name: parameter.grad.clone() for name, parameter in trainer.model.named_parameters()})

    trainer._optimiser.register_step_pre_hook(keep)
    if "diverged" in sys.argv:
        try:
            for _ in trainer.run():  # after the last step of the epoch, at least, no forward pass mends it
                if fabric.global_rank == 1:
                    trainer.model.stem.position.norm.running_var.fill_(float("inf"))
        except DivergedError:
            (output / f"diverged_{fabric.global_rank}").touch()
        fabric.barrier()
        return
    if "stopped" in sys.argv:
        list(trainer.run(stop=lambda: fabric.global_rank == 1))  # one process is asked, both stop
        assert trainer.stopped
        fabric.barrier()
        trainer = make_trainer(load_state(output / "state.safetensors"))
    events = list(trainer.run())
    test = trainer.evaluate("test")
    if fabric.is_global_zero:
        torch.save({"gradients": gradients, "buffers": dict(trainer.model.named_buffers())}, output / "tensors.pt")
        (output / "figures.json").write_text(json.dumps({"metrics": events[-1].metrics, "test": asdict(test)}))
    fabric.barrier()


main()
shut_down()
