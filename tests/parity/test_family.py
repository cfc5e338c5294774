"""The successors equal their authors' code: logits, spikes, loss, gradients, on recordings beside the repository."""

from pathlib import Path

import pytest
import torch

from spikformer.analysis.golden import FAMILY, Golden, load_golden
from spikformer.analysis.recorder import spike_counts

RECORDINGS = Path(__file__).parents[3] / "shared" / "golden" / "family"

pytestmark = [
    pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f"there are no recordings in {RECORDINGS}"),
    pytest.mark.filterwarnings("ignore:.*batch_leak:UserWarning"),
]


@pytest.fixture(params=FAMILY, scope="module")
def golden(request) -> Golden:
    return load_golden(request.param, RECORDINGS)


def test_eval_logits(golden: Golden) -> None:
    with torch.no_grad():
        error = (golden.logits(golden.model()) - golden.eval_logits).abs().max()
    assert error < 1e-9


def test_spikes_neuron_by_neuron(golden: Golden) -> None:
    assert spike_counts(golden.model(), golden.input) == golden.spike_counts


def test_loss_and_every_gradient(golden: Golden) -> None:
    model = golden.model().train()
    logits = golden.logits(model)
    loss = golden.loss(logits)
    loss.backward()
    assert (logits - golden.train_logits).abs().max() < 1e-9
    assert (loss - golden.train_loss).abs() < 1e-9
    gradients = {name: parameter.grad.flatten() for name, parameter in model.named_parameters()}
    expected = {name: gradient.flatten() for name, gradient in golden.gradients.items()}
    assert gradients.keys() == expected.keys()
    largest = max(gradient.abs().max() for gradient in expected.values())
    for name, gradient in gradients.items():
        assert (gradient - expected[name]).abs().max() < 1e-8 * largest, name
