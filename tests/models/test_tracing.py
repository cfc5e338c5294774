"""torch.jit.trace, and what is built on it: equal to the model on inputs that the trace has not seen, or an error."""

from pathlib import Path

import numpy as np
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torch.utils.tensorboard import SummaryWriter

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen

# PyTorch announces the end of TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


def small(name: str, dtype: torch.dtype = torch.float32, **overrides) -> sf.Spikformer:
    return specimen(shrunk(name, depth=1, embed_dim=32, num_heads=4, time_steps=2, **overrides), dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "grad"),
    [
        ("spikformer_tiny_digits", torch.float32, False),
        ("spikformer_tiny_digits", torch.float64, True),
        ("spikformer_2_256_dvs128", torch.float32, False),
        ("transformer_4_384_cifar10", torch.float32, False),
    ],
)
def test_a_trace_is_the_model_on_any_batch(name: str, dtype: torch.dtype, grad: bool, tmp_path: Path) -> None:
    model = small(name, dtype)
    with torch.set_grad_enabled(grad):
        traced = torch.jit.trace(model, frames_for(model.config, batch_size=3, dtype=dtype), check_trace=False)
    torch.jit.save(traced, tmp_path / "model.pt")
    loaded = torch.jit.load(tmp_path / "model.pt")
    with torch.no_grad():
        for batch_size in (1, 2, 5):
            x = frames_for(model.config, batch_size=batch_size, dtype=dtype, seed=batch_size)
            expected = model(x)
            assert expected.std(1).min() > 0
            for network in (traced, loaded):
                assert torch.allclose(network(x), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["maxformer_tiny_digits", "qkformer_4_384_cifar10"])
def test_a_trace_of_stages_is_the_model_on_any_batch(name: str) -> None:
    model = specimen(shrunk(name, time_steps=2), torch.float32)
    with torch.no_grad():
        traced = torch.jit.trace(model, frames_for(model.config, 3, torch.float32), check_trace=False)
        for batch_size in (1, 5):
            x = frames_for(model.config, batch_size, torch.float32, seed=batch_size)
            assert torch.allclose(traced(x), model(x), atol=1e-5)


def test_a_trace_has_the_gradients_of_the_model() -> None:
    model = small("spikformer_tiny_digits", torch.float64)
    traced = torch.jit.trace(model, frames_for(model.config, batch_size=2))
    x = frames_for(model.config, batch_size=3, seed=5)
    gradients = [
        torch.autograd.grad(network(x).square().sum(), list(model.parameters())) for network in (model, traced)
    ]
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_trace_of_event_frames_takes_no_other_number_of_steps() -> None:
    model = small("spikformer_2_256_dvs128")
    x = frames_for(model.config, batch_size=4, dtype=torch.float32)
    traced = torch.jit.trace(model, x)
    with pytest.raises(RuntimeError):
        traced(torch.cat([x, x]))
    with pytest.raises(RuntimeError):
        traced(x[:1])


def test_tensorboard_draws_the_graph(tmp_path: Path) -> None:
    model = small("spikformer_tiny_digits")
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, frames_for(model.config, batch_size=2, dtype=torch.float32))
    (log,) = tmp_path.iterdir()
    assert b"head" in log.read_bytes()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning", "ignore::UserWarning")
def test_an_onnx_file_of_the_trace_is_the_model_on_any_batch(tmp_path: Path) -> None:
    model = small("spikformer_tiny_digits")
    x = frames_for(model.config, batch_size=3, dtype=torch.float32)
    path = tmp_path / "model.onnx"
    torch.onnx.export(model, (x,), path, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    runtime = ReferenceEvaluator(str(path))
    for batch_size in (1, 4):
        x = frames_for(model.config, batch_size=batch_size, dtype=torch.float32, seed=batch_size)
        (found,) = runtime.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(found, model(x).detach().numpy(), atol=1e-5)
