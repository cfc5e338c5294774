"""Run by test_distributed under torchrun: what each process computes, written down by the first."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from spikformer.analysis.architectures import sized_like
from spikformer.config import SEWEventConfig
from spikformer.data import open_dataset
from spikformer.training import DivergedError, Recipe, Trainer, build_fabric, get_recipe
from spikformer.training.distributed import shut_down
from spikformer.training.state import SavedState, load_state

torch.set_num_threads(1)
sync_norms, output = sys.argv[1] == "synced", Path(sys.argv[2])
data = open_dataset("digits")
data = replace(data, train=data.train.take(np.arange(128)), test=data.test.take(np.arange(37)))
recipe = replace(get_recipe("spikformer_tiny_digits"), epochs=1, sync_norms=sync_norms, clip_gradient=None)
if "tet" in sys.argv:
    recipe = replace(recipe, loss="tet", optimiser="muon", accumulate=2)
fabric = build_fabric(accelerator="cpu")


def make_trainer(recipe: Recipe, saved: SavedState | None = None) -> Trainer:
    trainer = Trainer(recipe, data, fabric, state_path=output / "state.safetensors")
    trainer.model.double()
    trainer.start(saved)
    return trainer


def gradients_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    """Filled before the optimiser's first step."""
    gradients: dict[str, torch.Tensor] = {}

    def keep(*_: object) -> None:
        if not gradients:
            gradients.update({name: parameter.grad.clone() for name, parameter in trainer.model.named_parameters()})

    trainer._optimiser.register_step_pre_hook(keep)
    return gradients


def train_every_architecture() -> None:
    """In one launch: the gradients of each network's first step, and its metrics."""
    networks = sized_like(recipe.model.override(embed_dim=32, num_heads=2))
    networks["sew_event_net"] = SEWEventConfig(image_size=8, in_channels=1, num_classes=10, time_steps=4, widths=(8, 8))
    gradients, figures = {}, {}
    for name, config in networks.items():
        trainer = make_trainer(replace(recipe, model=config))
        first = gradients_of(trainer)
        *_, last = trainer.run()
        gradients[name], figures[name] = first, {**last.metrics, "num_tested": trainer.evaluate("test").num_samples}
    write(gradients, figures)


def write(tensors: object, figures: object) -> None:
    if fabric.is_global_zero:
        torch.save(tensors, output / "tensors.pt")
        (output / "figures.json").write_text(json.dumps(figures))
    fabric.barrier()


def train_one() -> None:
    trainer = make_trainer(recipe)
    gradients = gradients_of(trainer)
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
        trainer = make_trainer(recipe, load_state(output / "state.safetensors"))
    events = list(trainer.run())
    test = trainer.evaluate("test")
    write(
        {"gradients": gradients, "buffers": dict(trainer.model.named_buffers())},
        {"metrics": events[-1].metrics, "test": asdict(test)},
    )


if "architectures" in sys.argv:
    train_every_architecture()
else:
    train_one()
shut_down()
