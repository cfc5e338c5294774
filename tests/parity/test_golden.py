"""Equal to the authors' code: logits, spikes, loss, gradients, on the goldens in the package."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from spikformer.analysis.golden import GOLDEN_FOLDER, IN_PACKAGE, VARIANTS, list_goldens, load_golden, shorten
from spikformer.analysis.recorder import spike_counts
from spikformer.models.files import read_safetensors
from spikformer.runs.checks import parity

WHOLE = Path(__file__).parents[3] / "shared" / "golden"

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


def test_the_package_has_a_few_and_a_folder_what_it_has(tmp_path: Path) -> None:
    assert set(list_goldens()) == {*VARIANTS, *IN_PACKAGE}
    assert sum(path.stat().st_size for path in (GOLDEN_FOLDER / "family").iterdir()) < 3e6
    with pytest.raises(FileNotFoundError):
        list_goldens(tmp_path)
    with pytest.raises(FileNotFoundError):
        list_goldens(tmp_path / "nowhere")
    (tmp_path / "sdt_cifar.safetensors").symlink_to(GOLDEN_FOLDER / "family" / "sdt_cifar.safetensors")
    assert list_goldens(tmp_path) == ["sdt_cifar"]
    assert torch.equal(load_golden("sdt_cifar", tmp_path).input, load_golden("sdt_cifar").input)


@pytest.mark.parametrize("name", IN_PACKAGE)
def test_a_short_recording_keeps_vectors_and_the_first_convolution(name: str) -> None:
    golden = load_golden(name)
    kept = [parameter for parameter in golden.model().named_parameters() if parameter[0] in golden.gradients]
    assert golden.shortened
    assert {parameter for parameter, x in golden.model().named_parameters() if x.ndim == 1} < golden.gradients.keys()
    assert [x.shape[1] for _, x in kept if x.ndim > 1] == [3]


@pytest.mark.skipif(not WHOLE.is_dir(), reason=f"there are no recordings in {WHOLE}")
def test_short_recordings_are_made_from_whole_ones(tmp_path: Path) -> None:
    shorten(WHOLE, tmp_path)
    for name in IN_PACKAGE:
        metadata, tensors = read_safetensors(tmp_path / "family" / f"{name}.safetensors")
        expected, others = read_safetensors(GOLDEN_FOLDER / "family" / f"{name}.safetensors")
        assert metadata == expected
        assert tensors.keys() == others.keys()
        assert all(torch.equal(x, others[key]) for key, x in tensors.items())
