"""Evaluation: accuracy and loss of a model on a split, by class and after every time step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed
import torch.nn.functional as F
from torch import Tensor, nn

from spikformer.data import DataSet, Loader
from spikformer.errors import FieldError
from spikformer.models.inspection import eval_mode, unwrap


@dataclass(frozen=True)
class Evaluation:
    """Accuracy on a split; every sample is counted once, whatever the number of processes."""

    loss: float
    top1: float
    top5: float
    """Shares of correct answers by the mean readout of all steps; with at most five classes, top5 is 1."""
    after_steps: list[float]
    """Top-1 of the mean readout of the first 1, 2, … T steps."""
    confusion: list[list[int]]
    """Samples by class (row) and answer (column)."""
    num_samples: int
    unreadable: int
    """Samples that could not be read; they are not among `num_samples`."""
    silent: bool
    """No spike reached the head: every readout of every sample is the head's response to no input."""
    tta_top1: float | None = None
    """Share of correct answers by the mean over views of a picture (test-time augmentation); None if not asked for."""

    @property
    def by_class(self) -> list[float | None]:
        """Share of correct answers of each class; None where it has no samples."""
        return [row[label] / sum(row) if sum(row) else None for label, row in enumerate(self.confusion)]


@dataclass(frozen=True, kw_only=True)
class EvalOptions:
    """How a split is read. With several processes, all must take part."""

    batch_size: int = 128
    workers: int = 0
    strict: bool = False
    rank: int = 0
    world_size: int = 1
    tta: bool = False
    """Also answer by the mean over `views` of each picture, which takes three or six times as long."""
    on_batch: Callable[[int], None] = lambda _: None
    """Called with each batch's number of samples, for a progress bar."""


@torch.no_grad()
def evaluate(model: nn.Module, data: DataSet, split: str, options: EvalOptions | None = None) -> Evaluation:
    """Evaluate a model on its device; every module keeps its mode."""
    model = unwrap(model, "evaluate")
    with eval_mode(model):
        return evaluate_answers(model.forward_steps, data, split, model.resting_readout(), options)


def evaluate_answers(
    answer: Callable[[Tensor], Tensor],
    data: DataSet,
    split: str,
    resting: Tensor,
    options: EvalOptions | None = None,
) -> Evaluation:
    """Evaluate any function from inputs to readouts [T, B, K].

    `resting` [K] is the readout when nothing fires; inputs have its dtype and device.
    """
    options = options or EvalOptions()
    num_classes = len(resting)
    if len(data.class_names) > num_classes:
        raise FieldError(
            "num_classes", f"{data.name} has {len(data.class_names)} classes, but this model has {num_classes}."
        )
    if options.tta and data.events:
        raise FieldError("tta", f"tta is for pictures, and {data.name} has recordings of events; leave it out.")
    device, world_size = resting.device, options.world_size
    loader = Loader(
        data,
        split,
        options.batch_size,
        training=False,
        workers=options.workers,
        strict=options.strict,
        rank=options.rank,
        world_size=world_size,
    )
    time_steps = 0
    totals: dict[str, Tensor] = {}
    for batch in loader.epoch(0):
        inputs = data.prepare(batch.samples.to(device)).to(resting.dtype)
        readouts = answer(inputs)  # [T, B, K]
        time_steps = len(readouts)
        found = _count(readouts, batch.labels.to(device), resting)
        if options.tta:
            found["tta"] = _count_views(answer, inputs, batch.labels.to(device), data.can_mirror)
        totals = {name: totals[name] + value for name, value in found.items()} if totals else found
        options.on_batch(len(batch.labels) + len(batch.reasons))
    unreadable = torch.tensor(float(loader.unreadable.total()))
    if world_size > 1:
        time_steps = _agree(time_steps, device)
        totals = totals or _nothing(time_steps, num_classes, device, options.tta)
        unreadable = unreadable.to(device)
        for value in (*totals.values(), unreadable):
            torch.distributed.all_reduce(value)
    count = int(totals["count"]) if totals else 0
    if not count:
        raise FieldError("data", f"No sample of {data.name}, {split}, can be read; `spikformer data check` lists why.")
    return Evaluation(
        loss=float(totals["loss"]) / count,
        top1=int(totals["steps"][-1]) / count,
        top5=int(totals["top5"]) / count,
        after_steps=[right / count for right in totals["steps"].long().tolist()],
        confusion=totals["confusion"].long().tolist(),
        num_samples=count,
        unreadable=int(unreadable),
        silent=not totals["lively"],
        tta_top1=int(totals["tta"]) / count if options.tta else None,
    )


def views(x: Tensor, mirror: bool) -> list[tuple[Tensor, float]]:
    """Pictures [B, C, H, W] and how much each view counts: as they are, and shifted by a pixel along a diagonal.

    Shifts repeat the edge. With `mirror`, every view comes as its mirror image, too.
    """
    padded = F.pad(x, (1, 1, 1, 1), mode="replicate")
    height, width = x.shape[-2:]
    shifted = [(padded[..., shift : shift + height, shift : shift + width], 0.25) for shift in (0, 2)]
    found = [(x, 0.5), *shifted]
    if not mirror:
        return found
    return [(side, weight / 2) for view, weight in found for side in (view, view.flip(-1))]


def _count_views(answer: Callable[[Tensor], Tensor], inputs: Tensor, labels: Tensor, mirror: bool) -> Tensor:
    """How many samples the weighted mean over views answers right."""
    logits = sum(weight * answer(view.contiguous()).double().mean(0) for view, weight in views(inputs, mirror))
    return (torch.as_tensor(logits).argmax(1) == labels).sum().double()


def is_silent(readouts: Tensor, resting: Tensor) -> bool:
    """Whether no spike reached the head in any of the readouts [T, B, K]; `resting` [K] is its answer to nothing."""
    return bool((readouts == resting).all())  # exactly: a sum of zeros is zero in any order


def _count(readouts: Tensor, labels: Tensor, resting: Tensor) -> dict[str, Tensor]:
    """Sums over a batch, of its readouts [T, B, K]."""
    num_classes = len(resting)
    sums = readouts.double().cumsum(0)
    logits = sums[-1] / len(sums)
    answers = logits.argmax(1)
    near = logits.topk(min(5, num_classes), 1).indices
    pairs = (labels * num_classes + answers).bincount(minlength=num_classes**2)
    return {
        "count": labels.new_tensor(float(len(labels)), dtype=torch.float64),
        "loss": F.cross_entropy(logits, labels, reduction="sum"),
        "steps": (sums.argmax(-1) == labels).sum(1).double(),
        "top5": (near == labels[:, None]).sum().double(),
        "confusion": pairs.view(num_classes, num_classes).double(),
        "lively": sums.new_tensor(not is_silent(readouts, resting), dtype=torch.float64),
    }


def _nothing(time_steps: int, num_classes: int, device: torch.device, tta: bool) -> dict[str, Tensor]:
    """What a process adds that got no samples."""
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("count", "loss", "top5", "lively", *["tta"] * tta), ())
    shapes |= {"steps": (time_steps,), "confusion": (num_classes, num_classes)}
    return {name: torch.zeros(shape, dtype=torch.float64, device=device) for name, shape in shapes.items()}


def _agree(number: int, device: torch.device) -> int:
    """The largest of all processes' numbers."""
    shared = torch.tensor(number, device=device)
    torch.distributed.all_reduce(shared, torch.distributed.ReduceOp.MAX)
    return int(shared)
