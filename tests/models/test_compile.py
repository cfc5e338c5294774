"""torch.compile without graph breaks, torch.export, and mixed precision."""

import pytest
import torch

import spikformer as sf
from spikformer.analysis.specimens import frames_for, shrunk, specimen
from spikformer.neurons import SpikingNeuron

pytestmark = pytest.mark.slow


def small(name: str = "spikformer_tiny_digits", **overrides) -> sf.Spikformer:
    config = shrunk(name, depth=1, embed_dim=32, num_heads=4, time_steps=2, **overrides)
    return specimen(config, torch.float32)


@pytest.mark.parametrize("neuron", ["lif", "plif"])
def test_compile_has_no_graph_breaks_in_training(neuron: str) -> None:
    model, x = small(neuron=neuron).train(), None
    x = frames_for(model.config, batch_size=4, dtype=torch.float32)
    twin = sf.Spikformer(model.config)
    twin.load_state_dict(model.state_dict())
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    for network in (compiled, twin):
        network(x).square().sum().backward()
    for (name, ours), theirs in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours.grad, theirs.grad, rtol=1e-3, atol=1e-5), name
    for (name, ours), theirs in zip(model.named_buffers(), twin.buffers(), strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-5), name


@pytest.mark.parametrize("name", ["spikformer_2_256_dvs128", "transformer_4_384_cifar10"])
def test_compile_has_no_graph_breaks_in_inference(name: str) -> None:
    model = small(name)
    x = frames_for(model.config, batch_size=2, dtype=torch.float32)
    with torch.no_grad():
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
        assert torch.allclose(compiled, model(x), atol=1e-5)


@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "spikformer_2_256_dvs128", "transformer_4_384_cifar10"])
def test_export(name: str) -> None:
    model = small(name)
    x = frames_for(model.config, batch_size=2, dtype=torch.float32)
    program = torch.export.export(model, (x,))
    neurons = sum(isinstance(module, SpikingNeuron) for module in model.modules())
    targets = [node.target for node in program.graph.nodes]
    assert targets.count(torch.ops.spikformer.lif.default) == neurons
    with torch.no_grad():
        assert torch.allclose(program.module()(x), model(x), atol=1e-5)


@pytest.mark.parametrize("name", ["spikformer_tiny_digits", "transformer_4_384_cifar10"])
def test_export_with_any_batch(name: str) -> None:
    model = small(name)
    x = frames_for(model.config, batch_size=3, dtype=torch.float32)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=512)},))
    with torch.no_grad():
        for batch_size in (1, 2, 7):
            other = frames_for(model.config, batch_size=batch_size, dtype=torch.float32, seed=batch_size)
            assert torch.allclose(program.module()(other), model(other), atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_training_under_autocast_keeps_membranes_in_float32(dtype) -> None:
    model = small().train()
    mixed = []
    for block in model.blocks:
        block.attention.neuron.register_forward_hook(lambda _m, i, _o: mixed.append(i[0]))
    with torch.autocast("cpu", dtype=dtype):
        loss = model(frames_for(model.config, batch_size=4, dtype=torch.float32)).float().square().sum()
    loss.backward()
    assert {x.dtype for x in mixed} == {torch.float32}
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    assert model.head.weight.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "name",
    ["maxformer_tiny_digits", "qkformer_2_256_cifar10dvs", "ms_qkformer_4_384_cifar10"],
)
def test_networks_in_stages_compile_and_export(name: str) -> None:
    model = specimen(shrunk(name, time_steps=2), torch.float32)
    x = frames_for(model.config, batch_size=2, dtype=torch.float32)
    with torch.no_grad():
        expected = model(x)
        assert torch.allclose(torch.compile(model, fullgraph=True, backend="aot_eager")(x), expected, atol=1e-5)
        assert torch.allclose(torch.export.export(model, (x,)).module()(x), expected, atol=1e-5)
