"""What training minimises: teachers, penalties and schedules, by hand and in training."""

from dataclasses import replace

import pytest
import torch
from tests.mistakes import field_error
from torch import nn

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.data import open_dataset
from spikformer.models import build_model
from spikformer.training import Epoch, Recipe
from spikformer.training.losses import SynapticOperations, distillation_loss
from spikformer.training.objective import Objective, loss_and_logits, penalty_weight

TINY = "spikformer_tiny_digits"


def test_distillation_is_its_formula() -> None:
    readouts, teacher = torch.randn(3, 4, 5).double(), torch.randn(4, 5).double()
    wanted, learnt = (teacher / 2).softmax(-1), (readouts / 2).softmax(-1)
    expected = 4 * (wanted * (wanted / learnt).log()).sum(-1).mean()
    assert torch.allclose(distillation_loss(readouts, teacher, 2.0), expected, rtol=1e-12)
    assert distillation_loss(teacher[None], teacher, 3.0).abs() < 1e-12
    assert distillation_loss(readouts.bfloat16(), teacher.bfloat16(), 2.0).dtype == torch.float32


@pytest.mark.parametrize("loss", ["mean_logit", "tet"])
def test_the_share_weighs_labels_against_the_teacher(loss: str) -> None:
    outputs = torch.randn((3, 4, 5) if loss == "tet" else (4, 5)).double()
    labels, teacher = torch.tensor([0, 1, 2, 3]), torch.randn(4, 5).double()
    recipe = Recipe(loss=loss, distillation=0.3, distillation_temperature=1.5)
    found, logits = loss_and_logits(recipe, outputs, labels, teacher)
    labels_alone, _ = loss_and_logits(recipe, outputs, labels)
    taught = distillation_loss(outputs if loss == "tet" else outputs[None], teacher, 1.5)
    assert torch.allclose(found, 0.7 * labels_alone + 0.3 * taught, rtol=1e-12)
    assert logits.shape == (4, 5)


def test_a_teacher_and_its_share_come_together(make_trainer, digits) -> None:
    trainer = make_trainer()
    model, teacher = trainer.model, build_model(trainer.recipe.model)
    with field_error("teacher"):
        Objective(trainer.recipe, model, digits, teacher)
    taught = replace(trainer.recipe, distillation=0.5)
    with field_error("teacher"):
        Objective(taught, model, digits)
    assert Objective(taught, model, digits, teacher).teacher is teacher
    assert not teacher.training
    for field, value in (("num_classes", 3), ("in_channels", 2), ("image_size", (16, 16))):
        other = build_model(trainer.recipe.model.override(**{field: value}))
        with field_error(field):
            Objective(taught, model, digits, other)


@pytest.mark.slow
def test_a_student_follows_its_teacher_against_the_labels(make_trainer, digits) -> None:
    teacher = make_trainer().model
    nn.init.zeros_(teacher.head.weight)
    teacher.head.bias.data[3] = 20.0  # takes everything for a 3
    fresh = make_trainer(epochs=8, distillation=1.0, learning_rate=5e-3, warmup_epochs=0.0, teacher=teacher)
    fresh.start()
    list(fresh.run())
    answers = torch.tensor(fresh.evaluate("train").confusion).sum(0)
    assert answers.argmax() == 3
    assert answers[3] > 0.9 * answers.sum()


# Schedules.


def test_schedules_are_equal_parts_of_the_epochs() -> None:
    recipe = Recipe(epochs=8, cooldown_epochs=2, step_schedule=(1, 1, 2, 4), image_schedule=(16, 32))
    assert [recipe.time_steps(epoch) for epoch in range(10)] == [1, 1, 1, 1, 2, 2, 4, 4, 4, 4]
    assert [recipe.image_size(epoch) for epoch in range(10)] == [(16, 16)] * 4 + [(32, 32)] * 6
    plain = Recipe(epochs=2)
    assert (plain.time_steps(0), plain.image_size(0)) == (4, (32, 32))
    assert Recipe.from_dict(recipe.to_dict()) == recipe


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step_schedule", (1, 2)),  # does not end with T = 4
        ("step_schedule", (0, 4)),
        ("step_schedule", 4),
        ("step_schedule", ("1", 4)),
        ("image_schedule", (32, 16)),
        ("image_size", (30, 32)),  # no multiple of the patch size
        ("penalty_epochs", 3.0),
        ("distillation_temperature", 3.0),
    ],
)
def test_impossible_settings(field: str, value) -> None:
    settings = {"image_schedule" if field == "image_size" else field: value}
    with field_error(field):
        Recipe(**settings)


def test_a_penalty_needs_spikes_and_no_compiler() -> None:
    with field_error("compile"):
        Recipe(spike_penalty=0.1, compile=True)
    with field_error("spike_penalty", "relu"):
        Recipe(spike_penalty=0.1, model=sf.ModelConfig(neuron="relu"))


def test_every_epoch_has_its_steps_and_size(make_trainer) -> None:
    trainer = make_trainer(epochs=4, step_schedule=(1, 2), image_schedule=(4, 8), model=shaped(time_steps=2))
    seen: list[tuple[int, int]] = []
    trainer.model.stem.stages[0].conv.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[-1]))
    trainer.model.blocks[0].attention.neuron.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    trainer.start()
    per_epoch = []
    for event in trainer.run():
        if isinstance(event, Epoch):
            per_epoch.append({*seen[:4]})
            seen.clear()
    assert per_epoch == [{4, 1}, {4, 1}, {8, 2}, {8, 2}]
    assert trainer.model.config == trainer.recipe.model


def shaped(**overrides):
    return sf.create_model(TINY, **overrides).config


def test_a_scheduled_run_resumes_to_the_bit(make_trainer, tmp_path) -> None:
    from spikformer.training.state import load_state

    settings = {"epochs": 4, "step_schedule": (1, 2), "model": shaped(time_steps=2), "whiten": True}
    settings |= {"spike_penalty": 0.1, "penalty_epochs": 2.0}
    whole = make_trainer(**settings)
    whole.start()
    list(whole.run())
    stopped = make_trainer(state_path=tmp_path / "state.safetensors", **settings)
    stopped.start()
    list(stopped.run(lambda: stopped.progress.iteration >= 3))
    resumed = make_trainer(**settings)
    resumed.start(load_state(tmp_path / "state.safetensors"))
    list(resumed.run())
    ours, theirs = resumed.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_events_have_no_schedule(make_trainer) -> None:
    with field_error("step_schedule", "digits_dvs"):
        make_trainer(open_dataset("digits_dvs"), model=shaped(image_size=16, in_channels=2), step_schedule=(1, 4))


# The spike penalty.


def test_operations_are_spikes_times_their_fan_out() -> None:
    """A spike in front of a linear layer is read by all of its outputs, in front of a convolution by its windows."""
    model = specimen(shrunk(TINY)).train()
    seen = SynapticOperations()
    inputs: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            module.register_forward_pre_hook(lambda _, x, name=name: inputs.update({name: x[0]}))
        elif name.endswith(".mixing"):
            module.register_forward_pre_hook(lambda _, x, name=name: inputs.update({name: torch.stack(x)}))
    with seen.watch(model):
        model(frames_for(model.config, 3))
    caused = possible = 0.0
    for name, x in inputs.items():
        module = model.get_submodule(name)
        if name in ("stem.stages.0.conv", "head"):
            continue  # they read the image and a mean
        if isinstance(module, nn.Conv2d):
            fan_out = 9 * module.out_channels
        elif isinstance(module, nn.Linear):
            fan_out = module.out_features
        else:
            fan_out = model.config.head_dim
        caused, possible = caused + x.sum().item() * fan_out, possible + x.numel() * fan_out
    assert seen.share().item() == pytest.approx(caused / possible, rel=1e-5)
    assert seen.share().requires_grad


@pytest.mark.parametrize("name", ["cml_spikingformer_tiny_digits", "max_resnet_18_cifar10", "qkformer_4_384_cifar10"])
def test_membranes_are_not_counted_as_spikes(name: str) -> None:
    """Heads of membrane networks, and the shortcuts of Max-ResNet, read floats of either sign."""
    model, seen = specimen(shrunk(name)).train(), SynapticOperations()
    with seen.watch(model):
        model(frames_for(model.config, 3))
    counted = {part for part, module in model.named_modules() if seen._of_spikes.get(module)}
    assert "head" not in counted
    assert not any(part.endswith("shortcut.conv") for part in counted if name.startswith("max_resnet"))
    assert len(counted) > 4
    assert seen.share().item() > 0


def test_the_weight_of_the_penalty_rises() -> None:
    recipe = Recipe(spike_penalty=0.4, penalty_epochs=4.0)
    assert [penalty_weight(recipe, epoch) for epoch in (0, 1, 4, 9)] == pytest.approx([0, 0.1, 0.4, 0.4])
    assert penalty_weight(Recipe(spike_penalty=0.4), 0) == 0.4


@pytest.mark.slow
def test_a_penalised_network_fires_less(make_trainer) -> None:
    def density(**settings) -> float:
        trainer = make_trainer(epochs=6, **settings)
        trainer.start()
        list(trainer.run())
        seen = SynapticOperations()
        x = frames_for(trainer.model.config, 32).float()
        with seen.watch(trainer.model):
            trainer.model.train()(x)
        return seen.share().item()

    assert density(spike_penalty=5.0) < 0.8 * density()
