"""All time steps of a neuron at once: the operator `spikformer::lif`, with a backward pass by hand.

Autograd through `functional` keeps about six tensors per step. Here one is kept, the membrane H: spikes, resets and
surrogate all follow from it. On a CPU, torch.compile and torch.export see one node for each neuron.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType, get_interpreter_stack
from torch.autograd import forward_ad

from spikformer.errors import FieldError
from spikformer.neurons import reference
from spikformer.neurons.functional import Dynamics, empty_over_time

native: ModuleType | None
try:
    from spikformer.neurons import native
except ImportError:  # installed on a machine without a compiler
    native = None

_DYNAMICS = "bool leaky, float v_threshold, float? v_reset, str surrogate, float alpha, bool detach_reset"
_GAIN = "Tensor? learnt_gain, float gain"  # the first, if there is one
torch.library.define(
    "spikformer::lif",
    f"(Tensor current, Tensor? initial, {_GAIN}, {_DYNAMICS}, bool keep_membrane) -> (Tensor, Tensor, Tensor)",
)
torch.library.define(
    "spikformer::lif_backward",
    "(Tensor? grad_spikes, Tensor? grad_voltage, Tensor membrane, Tensor? initial, "
    f"{_GAIN}, {_DYNAMICS}) -> (Tensor, Tensor, Tensor)",
)


def multistep(
    current: Tensor, initial: Tensor | None, gain: float | Tensor, dynamics: Dynamics
) -> tuple[Tensor, Tensor]:
    """Currents [T, …] to spikes [T, …] and the last voltage […].

    Under mixed precision the membrane stays in float32: a half-precision current is widened here, and its spikes,
    exact in any format, come back as narrow as it was.
    """
    _check(current, initial)
    narrow = current.dtype
    if narrow in (torch.float16, torch.bfloat16):
        current = current.float()
    if initial is not None:
        initial = initial.to(current.dtype)
    learnt_gain = gain if isinstance(gain, Tensor) else None
    inputs = (current, initial, learnt_gain)
    learns = torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in inputs)
    if _needs_plain_operations(current) or (learns and callable(dynamics.surrogate)):
        spikes, voltage = reference.by_steps(current, initial, gain, dynamics)
    else:
        number = 1.0 if isinstance(gain, Tensor) else gain
        arguments = (*inputs, number, *_constants(dynamics), learns)
        run = torch.ops.spikformer.lif.default if _is_watched(current) else _Eager.apply if learns else _forward
        spikes, voltage, _ = run(*arguments)
    return spikes.to(narrow), voltage


def describe() -> str:
    """What computes neurons in this installation, for people."""
    if native is None:
        return "no native core: neurons run in plain PyTorch; install where there is a C++ compiler to have it"
    info = native.build_info()
    threads = f"OpenMP, {info['max_threads']} threads" if info["openmp"] else "one thread"
    return f"native core: {info['compiler']}, {threads}"


def kernels_for(current: Tensor, dynamics: Dynamics) -> ModuleType:
    """Native for float32 and float64 on a CPU and the paper's reset; PyTorch elsewhere."""
    if (
        native is not None
        and current.device.type == "cpu"
        and current.dtype in (torch.float32, torch.float64)
        and dynamics.v_reset is not None
        and dynamics.detach_reset
    ):
        return native
    return reference


def _check(current: Tensor, initial: Tensor | None) -> None:
    tracing = torch.jit.is_tracing()  # when sizes are unknown
    if not current.is_floating_point() or (not tracing and len(current) == 0):
        raise FieldError(
            "current",
            "A neuron expects floating-point currents [T, …] of at least one step, "
            f"got {current.dtype} {list(current.shape)}.",
        )
    if initial is not None and not tracing and initial.shape != current.shape[1:]:
        raise FieldError(
            "initial",
            f"Expected a voltage {list(current.shape[1:])} for currents {list(current.shape)}, "
            f"got {list(initial.shape)}; start from None, or from the voltage that the last call returned.",
        )


def _needs_plain_operations(current: Tensor) -> bool:
    """Whether PyTorch has to see through the operator: in torch.jit.trace, forward-mode autograd and torch.func.

    vmap alone has a rule of its own. A compiler for a GPU fuses plain operations, and could not fuse the operator.
    """
    if torch.compiler.is_compiling():
        return current.device.type != "cpu"
    transforms = get_interpreter_stack() or ()
    return (
        torch.jit.is_tracing()
        or forward_ad._current_level >= 0
        or any(transform.key() != TransformType.Vmap for transform in transforms)
    )


def _is_watched(x: Tensor) -> bool:
    """Whether anything but autograd has to see the operator: a compiler, a dispatch mode, vmap, a subclass."""
    return (
        torch.compiler.is_compiling()
        or type(x) not in (Tensor, torch.nn.Parameter)
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.maybe_current_level() is not None
        or torch._C._functorch.is_legacy_batchedtensor(x)  # of autograd, for is_grads_batched
    )


# The operator: what it computes, shapes alone, gradients, batches.


def _constants(dynamics: Dynamics) -> tuple[Any, ...]:
    """As the operator takes them; a surrogate of the user's own never reaches its backward pass."""
    surrogate = "sigmoid" if callable(dynamics.surrogate) else dynamics.surrogate
    reset = dynamics.v_reset
    return dynamics.leaky, dynamics.v_threshold, reset, surrogate, dynamics.alpha, dynamics.detach_reset


_dynamics = lru_cache(Dynamics)  # validated once


def _forward(
    current: Tensor, initial: Tensor | None, learnt_gain: Tensor | None, gain: float, *constants: Any
) -> tuple[Tensor, Tensor, Tensor]:
    *constants_of_dynamics, keep_membrane = constants
    dynamics = _dynamics(*constants_of_dynamics)
    kernels = kernels_for(current, dynamics)
    used_gain = gain if learnt_gain is None else learnt_gain
    spikes, voltage, membrane = kernels.forward(current, initial, used_gain, dynamics, keep_membrane)
    return spikes, voltage, current.new_empty(0) if membrane is None else membrane


def _backward(
    grad_spikes: Tensor | None,
    grad_voltage: Tensor | None,
    membrane: Tensor,
    initial: Tensor | None,
    learnt_gain: Tensor | None,
    gain: float,
    *constants: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    dynamics = _dynamics(*constants)
    kernels = kernels_for(membrane, dynamics)
    used_gain = gain if learnt_gain is None else learnt_gain
    if grad_spikes is None:
        grad_spikes = torch.zeros_like(membrane)
    return kernels.backward(grad_spikes, grad_voltage, membrane, initial, used_gain, dynamics)


torch.library.impl("spikformer::lif", "CompositeExplicitAutograd", _forward)
torch.library.impl("spikformer::lif_backward", "CompositeExplicitAutograd", _backward)


@torch.library.register_fake("spikformer::lif")
def _forward_shapes(current: Tensor, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
    spikes, keep_membrane = empty_over_time(current), arguments[-1]
    return spikes, torch.empty_like(spikes[0]), torch.empty_like(spikes) if keep_membrane else current.new_empty(0)


@torch.library.register_fake("spikformer::lif_backward")
def _backward_shapes(
    grad_spikes: Tensor | None, grad_voltage: Tensor | None, membrane: Tensor, *arguments: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(membrane), torch.empty_like(membrane[0]), membrane.new_empty(())


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, initial, learnt_gain, gain, *constants, _ = inputs
    # Where the membrane started matters to a learnable gain only.
    ctx.save_for_backward(output[2], None if learnt_gain is None else initial, learnt_gain)
    ctx.gain, ctx.constants = gain, constants
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad_spikes: Tensor | None, grad_voltage: Tensor | None, _: Any) -> tuple[Any, ...]:
    membrane = ctx.saved_tensors[0]
    watched = torch.is_grad_enabled() or _is_watched(membrane if grad_spikes is None else grad_spikes)
    run = torch.ops.spikformer.lif_backward.default if watched else _backward
    grad_current, grad_initial, grad_gain = run(grad_spikes, grad_voltage, *ctx.saved_tensors, ctx.gain, *ctx.constants)
    of_initial, of_gain = ctx.needs_input_grad[1:3]
    rest = [None] * (len(ctx.constants) + 2)
    return grad_current, grad_initial if of_initial else None, grad_gain if of_gain else None, *rest


class _Eager(torch.autograd.Function):
    """The operator without PyTorch's dispatcher, whose tenth of a millisecond a call small networks would feel."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor, Tensor]:
        output = _forward(*arguments)
        _save(ctx, arguments, output)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _differentiate(ctx, *grads)


def _differentiate_twice(ctx: Any, *grads: Tensor) -> None:
    raise RuntimeError(
        "A neuron's gradient cannot be differentiated again by autograd; use torch.func, such as "
        "torch.func.grad(torch.func.grad(f)) or torch.func.hessian(f)."
    )


torch.library.register_autograd("spikformer::lif", _differentiate, setup_context=_save)
torch.library.register_autograd("spikformer::lif_backward", _differentiate_twice)


@torch.library.register_vmap("spikformer::lif")
def _batched_forward(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
    current, initial, learnt_gain, *others = arguments
    if in_dims[2] is not None:  # a gain for each: one neuron after the other
        return _one_by_one(torch.ops.spikformer.lif.default, info.batch_size, in_dims, arguments)
    current = _with_batch(current, in_dims[0], 1, info.batch_size)
    if initial is not None:
        initial = _with_batch(initial, in_dims[1], 0, info.batch_size)
    spikes, voltage, membrane = torch.ops.spikformer.lif.default(current, initial, learnt_gain, *others)
    return (spikes, voltage, membrane), (1, 0, 1 if others[-1] else None)


@torch.library.register_vmap("spikformer::lif_backward")
def _batched_backward(info: Any, in_dims: tuple[int | None, ...], *arguments: Any) -> tuple[Any, Any]:
    return _one_by_one(torch.ops.spikformer.lif_backward.default, info.batch_size, in_dims, arguments)


def _with_batch(x: Tensor, axis: int | None, place: int, size: int) -> Tensor:
    """The batched axis moved to a place, or made there."""
    if axis is not None:
        return x.movedim(axis, place)
    return x.unsqueeze(place).expand(*x.shape[:place], size, *x.shape[place:])


def _one_by_one(operator: Any, size: int, in_dims: tuple[int | None, ...], arguments: tuple[Any, ...]) -> Any:
    results = []
    for index in range(size):
        pairs = zip(arguments, in_dims, strict=True)
        results.append(operator(*(x if axis is None else x.select(axis, index) for x, axis in pairs)))
    return tuple(torch.stack(parts) for parts in zip(*results, strict=True)), (0, 0, 0)
