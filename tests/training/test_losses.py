"""The losses: by hand, on the recording of the authors' own, and in training with everything that wraps a network."""

from pathlib import Path

import pytest
import torch
from torch.nn.functional import one_hot

import spikformer as sf
from spikformer.analysis.golden import load_golden
from spikformer.config import SpikeDrivenConfig
from spikformer.data.augmentation import Augmentation
from spikformer.training import Epoch, Iteration, Recipe
from spikformer.training.losses import mean_logit_loss, tet_loss
from spikformer.training.objective import StepReadouts, loss_and_logits, network_for

RECORDINGS = Path(__file__).parents[3] / "shared" / "golden" / "family"


def test_tet_is_its_formula_for_labels_and_for_shares() -> None:
    readouts = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 3, 4, 1])
    log_shares = readouts.log_softmax(-1)
    entropy = -torch.stack([log_shares[:, sample, label] for sample, label in enumerate(labels)]).mean()
    expected = 0.9 * entropy + 0.1 * ((readouts - 1) ** 2).mean()
    assert torch.allclose(tet_loss(readouts, labels, 0.1), expected, rtol=1e-14)
    shares = one_hot(labels, 5).double()
    assert torch.allclose(tet_loss(readouts, shares, 0.1), expected, rtol=1e-14)
    mixed = 0.3 * shares + 0.7 * shares.flip(0)
    cross = -(log_shares * mixed).sum(-1).mean()
    assert torch.allclose(tet_loss(readouts, mixed, 0.0), cross, rtol=1e-14)


def test_one_step_without_its_term_is_the_mean_logit_loss() -> None:
    readouts, labels = torch.randn(1, 6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert torch.equal(tet_loss(readouts, labels, 0.0), mean_logit_loss(readouts[0], labels))


@pytest.mark.parametrize("loss", [mean_logit_loss, lambda readouts, labels: tet_loss(readouts[None], labels)])
def test_short_floats_are_summed_in_float32(loss) -> None:
    readouts, labels = torch.randn(6, 3), torch.tensor([0, 1, 2, 0, 1, 2])
    assert loss(readouts.bfloat16(), labels).dtype == torch.float32
    assert loss(readouts.double(), labels).dtype == torch.float64


def test_a_recipes_word_decides_what_the_network_returns() -> None:
    model, x = sf.create_model("spikformer_tiny_digits").eval(), torch.rand(2, 1, 8, 8)
    targets = torch.tensor([1, 2])
    steps = network_for(Recipe(loss="tet", tet_lambda=0.5), model)
    assert isinstance(steps, StepReadouts)
    assert network_for(Recipe(), model) is model
    loss, logits = loss_and_logits(Recipe(loss="tet", tet_lambda=0.5), steps(x), targets)
    assert torch.equal(loss, tet_loss(model.forward_steps(x), targets, 0.5))
    assert torch.allclose(logits, model(x))


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f"there are no recordings in {RECORDINGS}")
def test_tet_is_the_authors_own_on_their_recording() -> None:
    golden = load_golden("sdt_dvs_tet", RECORDINGS)
    model = golden.model().train()
    assert isinstance(model.config, SpikeDrivenConfig)
    recipe = Recipe(loss="tet", model=model.config)
    loss, _ = loss_and_logits(recipe, network_for(recipe, model)(golden.input), golden.target)
    assert abs(loss - golden.train_loss) < 1e-12
    loss.backward()
    largest = max(gradient.abs().max() for gradient in golden.gradients.values())
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        assert (parameter.grad.flatten() - golden.gradients[name].flatten()).abs().max() < 1e-8 * largest, name


MIXED = Augmentation(mixup=0.5, label_smoothing=0.1)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        pytest.param({"augmentation": MIXED, "accumulate": 2}, marks=pytest.mark.slow),
        pytest.param({"precision": "bfloat16"}, marks=pytest.mark.slow),
        pytest.param({"ema_decay": 0.9, "clip_gradient": 1.0}, marks=pytest.mark.slow),
    ],
    ids=["plain", "mixed", "bfloat16", "averaged"],
)
def test_a_network_learns_by_it(settings: dict, make_trainer) -> None:
    trainer = make_trainer(loss="tet", epochs=6, **settings)
    trainer.start()
    events = list(trainer.run())
    losses = [event.metrics["train_loss"] for event in events if isinstance(event, Epoch)]
    assert losses[-1] < losses[0] - 0.1
    assert len(trainer.evaluate("test").after_steps) == trainer.recipe.model.time_steps


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # dynamo's own
def test_a_compiled_network_has_the_same_loss(make_trainer, monkeypatch) -> None:
    compile_model = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model, **_: compile_model(model, backend="eager"))
    first = []
    for compiled in (False, True):
        trainer = make_trainer(loss="tet", epochs=1, compile=compiled)
        trainer.model.double()
        trainer.start()
        first.append(next(event.loss for event in trainer.run() if isinstance(event, Iteration)))
    assert first[1] == pytest.approx(first[0], rel=1e-9)
