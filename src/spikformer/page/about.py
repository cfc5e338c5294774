"""What the page has to know about its network, as plain JSON: card, ops with sizes and counts, attention, energy.

The script computes the rest from spikes. Names may come from anybody, and are only ever shown as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spikformer.config import LARGEST_ACTIVATION
from spikformer.engine.ops import OP_NAMES, And, Attend, Fire, Op, Value
from spikformer.engine.program import Compiled, Program
from spikformer.errors import FieldError
from spikformer.paper import AC_PJ, MAC_PJ

MOST_STEPS = 16
"""Time steps that can be asked for in the page, unless the network has more of its own."""


def describe(compiled: Compiled) -> dict[str, Any]:
    """Everything but the samples."""
    card, program = compiled.card, compiled.program
    seen = card.known_preprocessing
    if not any(True for _ in program.state_ops()):
        raise FieldError("ops", "This program has no spiking neurons to watch; compile a spiking network.")
    values = program.values(*seen.size)
    largest = max(value.positions * value.channels for value in values)
    own = seen.time_steps or program.time_steps
    return {
        "title": compiled.config.title if compiled.config is not None else card.architecture,
        "card": card.to_dict() | {"settings": {}},
        "classes": list(card.class_names) or [str(index) for index in range(program.num_classes)],
        "preprocessing": seen.to_dict(),
        "timeSteps": own,
        "mostSteps": max(own, min(MOST_STEPS, LARGEST_ACTIVATION // largest)),
        "patchSize": program.patch_size,
        "parameters": sum(getattr(op, name).size for op in program.ops for name in op.arrays),
        "ops": [_op(op, number, values) for number, op in enumerate(program.ops, start=1)],
        "resting": [float(bias) for bias in program.read_out.bias],
        "attention": list(_attention(program, values)),
        "energy": {"macPj": MAC_PJ, "acPj": AC_PJ, "twinMacs": twin_macs(program, values)},
    }


def twin_macs(program: Program, values: list[Value]) -> int:
    """Of the ANN twin: every product once, and the two of softmax attention, which needs Q Kᵀ."""
    total = 0
    for op in program.ops:
        inputs = [values[number] for number in op.inputs]
        total += 2 * inputs[0].positions ** 2 * inputs[0].channels if isinstance(op, Attend) else op.macs(*inputs)
    return total


def _op(op: Op, number: int, values: list[Value]) -> dict[str, Any]:
    """An op as the script needs it: what it reads, what it writes, and what it costs in a step."""
    value = values[number]
    described: dict[str, Any] = {
        "name": op.name,
        "op": OP_NAMES[type(op)],
        "inputs": list(op.inputs),
        "kind": value.kind,
        "channels": value.channels,
        "height": value.height,
        "width": value.width,
        "macs": op.macs(*(values[each] for each in op.inputs)),
    }
    for field in ("kernel", "inverted", "scale"):
        if hasattr(op, field):
            described[field] = getattr(op, field)
    if hasattr(op, "num_heads"):
        described["heads"] = op.num_heads
    if isinstance(op, Fire):
        described |= {"threshold": op.neuron.v_threshold, "reset": op.neuron.v_reset}
    return described


def _attention(program: Program, values: list[Value]) -> Iterator[dict[str, Any]]:
    """Ops that attend: products Q Kᵀ V, and masks over channels or tokens, with the neurons whose heads can be cut."""
    for number, op in enumerate(program.ops, start=1):
        if isinstance(op, Attend):
            fires = (each for each in program.ops if isinstance(each, Fire) and number in each.inputs)
            neuron = next(fires, None)
            yield _attends(op, number, "product", op.num_heads, neuron)
        elif isinstance(op, And) and op.form(*(values[each] for each in op.inputs)) != "same":
            mask = program.ops[op.inputs[1] - 1]
            by_token = op.form(*(values[each] for each in op.inputs)) == "heads"
            heads = op.num_heads if by_token else 1  # a mask of channels knows no heads
            yield _attends(op, number, "mask", heads, mask if isinstance(mask, Fire) else None)


def _attends(op: Op, number: int, form: str, heads: int, neuron: Op | None) -> dict[str, Any]:
    block = op.name.removesuffix(".mixing").removesuffix(".gate").removesuffix(".attention")
    return {
        "block": block,
        "form": form,
        "number": number,
        "heads": heads,
        "neuron": None if neuron is None else neuron.name,
    }
