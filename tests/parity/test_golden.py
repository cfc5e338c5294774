"""Equal to the authors' code: logits, spikes, loss, gradients, on the goldens in the package."""

import pytest
import torch
import torch.nn.functional as F

from spikformer.analysis.golden import VARIANTS, load_golden
from spikformer.analysis.recorder import spike_counts
from spikformer.runs.verify import parity

pytestmark = pytest.mark.core


@pytest.fixture(params=VARIANTS)
def golden(request):
    return load_golden(request.param)


def test_eval_logits(golden) -> None:
    with torch.no_grad():
        error = (golden.model()(golden.input) - golden.eval_logits).abs().max()
    assert error < 1e-9


def test_spikes_neuron_by_neuron(golden) -> None:
    assert spike_counts(golden.model(), golden.input) == golden.spike_counts


def test_loss_and_every_gradient(golden) -> None:
    model = golden.model().train()
    logits = model(golden.input)
    loss = F.cross_entropy(logits, golden.target)
    loss.backward()
    assert (logits - golden.train_logits).abs().max() < 1e-8
    assert (loss - golden.train_loss).abs() < 1e-8
    gradients = {name: p.grad for name, p in model.named_parameters()}
    assert gradients.keys() == golden.gradients.keys()
    for name, gradient in gradients.items():
        assert (gradient.flatten() - golden.gradients[name].flatten()).abs().max() < 1e-8, name


def test_the_verifier_agrees(golden) -> None:
    assert all(check.holds for check in parity(golden))


def test_float32_has_the_same_spikes_but_for_rounding(golden) -> None:
    model = golden.model().float()
    counts = spike_counts(model, golden.input.float())
    for name, (spikes, total) in golden.spike_counts.items():
        assert abs(counts[name][0] - spikes) <= 1e-3 * total, name
