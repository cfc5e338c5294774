"""Training: it learns, it is repeatable, it resumes where it stopped, and a refactor keeps the recorded curve."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.mistakes import field_error

from spikformer.data.augmentation import Augmentation
from spikformer.training import Epoch, Iteration, Trainer, get_recipe
from spikformer.training.state import load_state

CURVE = Path(__file__).parent / "losses_tiny_digits_float64.json"


def run(trainer: Trainer, stop_after: int | None = None) -> list[Iteration | Epoch]:
    """Train to the end, or be stopped after some steps."""
    events: list[Iteration | Epoch] = []

    def stop() -> bool:
        return stop_after is not None and trainer.progress.iteration >= stop_after

    events.extend(trainer.run(stop))
    assert trainer.stopped == (stop_after is not None)
    return events


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.finished_model.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def losses(make_trainer, digits) -> list[float]:
    """Twenty steps of one batch each, in float64, where rounding cannot flip a spike."""
    data = replace(digits, train=digits.train.take(np.arange(64)), validation=None)
    trainer = make_trainer(data, epochs=20)
    trainer.model.double()
    trainer.start()
    return [event.loss for event in run(trainer) if isinstance(event, Iteration)]


def test_the_recorded_curve(make_trainer, digits) -> None:
    """Recorded by this function; a change of mathematics or data may record it anew, and must say why."""
    assert losses(make_trainer, digits) == pytest.approx(json.loads(CURVE.read_text()), rel=1e-9)


def test_it_learns_and_reports(make_trainer) -> None:
    trainer = make_trainer(epochs=12)
    trainer.start()
    events = run(trainer)
    epochs = [event for event in events if isinstance(event, Epoch)]
    assert len(events) == 12 * 2 + 12
    assert [epoch.number for epoch in epochs] == list(range(1, 13))
    assert epochs[-1].metrics["train_loss"] < epochs[0].metrics["train_loss"] - 0.5
    assert epochs[-1].metrics["validation_accuracy"] > 0.5
    best = max(epoch.metrics["validation_accuracy"] for epoch in epochs)
    assert trainer.progress.best_accuracy == best
    assert [epoch.number for epoch in epochs if epoch.best][-1] == trainer.progress.best_epoch
    assert trainer.evaluate("test").top1 > 0.5


def test_a_seed_repeats_a_run_and_another_does_not(make_trainer) -> None:
    results = []
    for seed in (0, 0, 1):
        trainer = make_trainer(seed=seed)
        trainer.start()
        run(trainer)
        results.append(weights(trainer))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])


ADVENTUROUS = {
    "epochs": 3,
    "augmentation": Augmentation(operations=("rotate",), mixup=0.5, label_smoothing=0.1),
    "mixing_epochs": 2,
    "ema_decay": 0.9,
    "accumulate": 2,
}


@pytest.mark.parametrize("settings", [{}, ADVENTUROUS, {"precision": "bfloat16"}], ids=["plain", "adventurous", "bf16"])
@pytest.mark.parametrize("stop_after", [2, *(pytest.param(epoch, marks=pytest.mark.slow) for epoch in (1, 3))])
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    settings, stop_after: int, make_trainer, tmp_path: Path
) -> None:
    """Two steps an epoch: stopped in mid-epoch, at the end of one, and in the next."""
    whole = make_trainer(**settings)
    whole.start()
    run(whole)
    first = make_trainer(state_path=tmp_path / "state.safetensors", **settings)
    first.start()
    run(first, stop_after)
    second = make_trainer(state_path=tmp_path / "state.safetensors", **settings)
    second.start(load_state(tmp_path / "state.safetensors"))
    run(second)
    assert same(weights(second), weights(whole))
    for ours, theirs in zip(second.progress.history, whole.progress.history, strict=True):
        timing = {"seconds", "samples_per_second"}
        assert {k: v for k, v in ours.items() if k not in timing} == {
            k: v for k, v in theirs.items() if k not in timing
        }


def test_the_state_is_kept_as_often_as_asked(make_trainer, tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    trainer = make_trainer(state_path=path, save_seconds=0.0)
    trainer.start()
    events = trainer.run()
    next(events)
    assert load_state(path).progress.iteration == 1
    assert load_state(path).progress.batch == 1


def test_gradients_are_clipped_and_only_then(make_trainer) -> None:
    moved = []
    for clip in (None, 1e-6):
        trainer = make_trainer(epochs=1, clip_gradient=clip, weight_decay=0.0)
        seen: list[float] = []
        trainer.start()
        optimiser = trainer._optimiser
        optimiser.register_step_pre_hook(
            lambda *_, seen=seen, trainer=trainer: seen.append(
                torch.stack([p.grad.norm() for p in trainer.model.parameters()]).norm().item()
            )
        )
        run(trainer)
        moved.append(max(seen))
    assert moved[0] > 1e-3
    assert moved[1] == pytest.approx(1e-6, rel=1e-3)


def test_accumulated_parts_add_up_to_the_batch(make_trainer) -> None:
    """With norms that do not look at the batch, two halves have the gradient of the whole."""
    gradients = []
    for accumulate in (1, 2):
        trainer = make_trainer(epochs=1, accumulate=accumulate, clip_gradient=None)
        trainer.model.double()
        trainer.start()
        model = trainer.model.eval()
        model.train = lambda mode=True, model=model: model  # so it stays
        found: dict[str, torch.Tensor] = {}
        trainer._optimiser.register_step_pre_hook(
            lambda *_, found=found, trainer=trainer: found.update(
                {name: p.grad.clone() for name, p in trainer.model.named_parameters() if name not in found}
            )
        )
        next(trainer.run())
        gradients.append(found)
    for name, gradient in gradients[0].items():
        assert torch.allclose(gradients[1][name], gradient, rtol=1e-9, atol=1e-12), name


def test_the_average_follows_the_weights(make_trainer) -> None:
    trainer = make_trainer(epochs=3, ema_decay=0.5)
    trainer.start()
    run(trainer)
    live, average = trainer.model.state_dict(), weights(trainer)
    assert not torch.equal(live["head.weight"], average["head.weight"])
    assert not torch.equal(live["stem.stages.0.norm.running_mean"], average["stem.stages.0.norm.running_mean"])
    assert torch.allclose(live["head.weight"], average["head.weight"], atol=0.05)


def test_mixing_ends_when_it_should(make_trainer) -> None:
    """Mixed targets cost the loss its bottom: in the epoch after, it falls."""
    seen = []
    augmentation = Augmentation(mixup=1.0)
    for mixing_epochs in (None, 0):
        trainer = make_trainer(epochs=1, augmentation=augmentation, mixing_epochs=mixing_epochs)
        trainer.start()
        seen.append(next(trainer.run()).loss)
    assert seen[0] != seen[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # dynamo's own
def test_compiled_training_takes_the_same_steps(make_trainer, monkeypatch) -> None:
    """With a backend that only records what it is given; a real one rounds otherwise, and takes minutes."""
    compiled = []
    compile_model = torch.compile

    def record(model: torch.nn.Module, **_: object) -> torch.nn.Module:
        compiled.append(model)
        return compile_model(model, backend="eager")

    monkeypatch.setattr(torch, "compile", record)
    results = []
    for compile_it in (False, True):
        trainer = make_trainer(epochs=1, compile=compile_it)
        trainer.start()
        run(trainer)
        results.append(weights(trainer))
    assert compiled, "and fabric compiles what it wraps once more"
    assert results[0].keys() == results[1].keys()
    assert all(torch.allclose(results[0][name].float(), results[1][name].float(), atol=1e-2) for name in results[0])


def test_events_train_too(make_trainer) -> None:
    from spikformer.data import open_dataset

    data = open_dataset("digits_dvs")
    data = replace(data, train=data.train.take(np.arange(128)), validation=None)
    trainer = make_trainer(data, model=get_recipe("spikformer_tiny_digits_dvs").model, epochs=6)
    trainer.start()
    epochs = [event for event in run(trainer) if isinstance(event, Epoch)]
    assert epochs[-1].metrics["train_loss"] < epochs[0].metrics["train_loss"] - 0.2


def test_a_model_of_ones_own_is_trained(make_trainer, digits, fabric) -> None:
    reference = make_trainer(epochs=1)
    model = copy.deepcopy(reference.model)
    trainer = Trainer(reference.recipe, digits, fabric, model)
    for each in (reference, trainer):
        each.start()
        run(each)
    assert trainer.model is model
    assert same(weights(trainer), weights(reference))
    with field_error("model"):
        Trainer(replace(reference.recipe, model=reference.recipe.model.override(depth=1)), digits, fabric, model)


def test_frozen_parameters_stay(make_trainer) -> None:
    trainer = make_trainer(epochs=1, freeze=("stem.*", "*.norm.*"))
    before = {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}
    trainer.start()
    run(trainer)
    after = dict(trainer.model.named_parameters())
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert not any(name.startswith("stem.") or ".norm." in name for name in moved)
    with field_error("freeze", "'nonsense*'"):
        make_trainer(freeze=("nonsense*",))


def test_patience_ends_training_early(make_trainer) -> None:
    trainer = make_trainer(epochs=50, learning_rate=1e-12, warmup_epochs=0.0, patience=2)
    trainer.start()
    epochs = [event for event in run(trainer) if isinstance(event, Epoch)]
    assert len(epochs) == trainer.progress.best_epoch + 2 < 50
