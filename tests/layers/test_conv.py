"""The conv-norm-spike unit: a static image is computed once and leaves the same traces as T copies."""

import pytest
import torch
from torch import nn

from spikformer.layers import PreActivationConv, SpikingConv, SpikingLinear
from spikformer.layers.conv import Conv2d, batch_norm, channels_last
from spikformer.neurons import LIF

pytestmark = pytest.mark.core


def test_a_repeated_image_leaves_the_statistics_of_its_copies() -> None:
    x = torch.randn(3, 5, 4, 4, dtype=torch.float64)
    once, copies = nn.BatchNorm2d(5).double(), nn.BatchNorm2d(5).double()
    for _ in range(3):
        y = batch_norm(once, x, repeats=4)
        expected = copies(x.repeat(4, 1, 1, 1))
    assert torch.allclose(y, expected[:3], atol=1e-12)
    assert torch.allclose(once.running_mean, copies.running_mean, atol=1e-14)
    assert torch.allclose(once.running_var, copies.running_var, atol=1e-14)
    assert once.num_batches_tracked == copies.num_batches_tracked


def test_two_forward_passes_before_one_backward() -> None:
    layer = SpikingConv(3, 8)
    first = layer(torch.randn(1, 2, 3, 8, 8), repeats=4)
    second = layer(torch.randn(1, 2, 3, 8, 8), repeats=4)
    (first.sum() + second.sum()).backward()
    assert layer.conv.weight.grad.abs().sum() > 0


def test_a_static_image_is_convolved_once() -> None:
    layer, calls = SpikingConv(3, 8).double().eval(), []  # float64, where sums have an order of ours
    layer.conv.register_forward_hook(lambda _m, inputs, _o: calls.append(inputs[0].shape))
    image = torch.randn(1, 2, 3, 8, 8, dtype=torch.float64) * 3
    once = layer(image, repeats=4)
    copies = layer(image.expand(4, -1, -1, -1, -1))
    assert torch.equal(once, copies)
    assert [len(shape) and shape[0] for shape in calls] == [2, 8]


def test_channels_last_whatever_the_batch_and_channels() -> None:
    for shape in [(1, 3, 4, 5), (2, 1, 4, 5), (1, 1, 4, 5), (2, 3, 4, 5)]:
        x = torch.randn(shape)
        assert torch.equal(channels_last(x), x)
        out = nn.functional.conv2d(channels_last(x), torch.randn(8, shape[1], 3, 3))
        assert out.stride(1) == 1


def test_units_work_in_a_sequence() -> None:
    convolutions = nn.Sequential(SpikingConv(2, 4), SpikingConv(4, 4, neuron=lambda: LIF(tau=3.0)))
    assert convolutions(torch.randn(3, 2, 2, 6, 6)).shape == (3, 2, 4, 6, 6)
    linear = nn.Sequential(SpikingLinear(4, 8), SpikingLinear(8, 5, bias=False))
    assert set(linear(torch.randn(3, 2, 7, 4)).unique().tolist()) <= {0.0, 1.0}


def test_kernel_stride_groups_and_bias_are_those_of_the_convolution() -> None:
    x = torch.randn(2, 3, 4, 8, 8)
    layer = PreActivationConv(4, 4, pooled=True, kernel_size=5, groups=4, bias=True).eval()
    spikes = layer.neuron(x)
    expected = nn.functional.conv2d(spikes.flatten(0, 1), layer.conv.weight, layer.conv.bias, padding=2, groups=4)
    pooled = nn.functional.max_pool2d(layer.norm(expected), kernel_size=3, stride=2, padding=1)
    assert torch.allclose(layer(x).flatten(0, 1), pooled, atol=1e-5)
    strided = SpikingConv(4, 6, kernel_size=1, stride=4).eval()
    positions = nn.functional.conv2d(x.flatten(0, 1)[..., ::4, ::4], strided.conv.weight)
    assert torch.allclose(strided.current(x).flatten(0, 1), strided.norm(positions), atol=1e-5)


def test_strided_shortcuts_of_few_channels_have_the_gradient_of_the_positions_they_read() -> None:
    """By PyTorch's own stride, this backward pass once wrote beyond its memory."""
    conv = Conv2d(6, 12, kernel_size=1, stride=2, bias=False)
    x = torch.randn(6, 6, 24, 32).contiguous(memory_format=torch.channels_last).requires_grad_()
    conv(x).square().sum().backward()
    read = x.detach()[..., ::2, ::2]
    output = torch.einsum("oc,bchw->bohw", conv.weight.detach().flatten(1), read)
    expected = torch.zeros_like(x)
    expected[..., ::2, ::2] = 2 * torch.einsum("oc,bohw->bchw", conv.weight.detach().flatten(1), output)
    assert torch.allclose(x.grad, expected, atol=1e-4)
    weights = 2 * torch.einsum("bohw,bchw->oc", output, read)
    assert torch.allclose(conv.weight.grad.flatten(1), weights, rtol=1e-4, atol=1e-2)
