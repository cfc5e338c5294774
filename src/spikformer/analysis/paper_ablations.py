"""What the paper's ablations print, by data set: Tab. 1, 2, 3, 4 and 5, and the one on CIFAR in the appendix."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spikformer.config import ModelConfig
from spikformer.presets import PaperRow, get_preset, list_models

_REFERENCES = {
    "cifar10": "spikformer_4_384_cifar10",
    "cifar100": "spikformer_4_384_cifar100",
    "imagenet": "spikformer_8_512_imagenet",
    "cifar10dvs": "spikformer_2_256_cifar10dvs",
    "dvs128": "spikformer_2_256_dvs128",
}
"""The model that the paper ablates; sizes are compared by their own presets."""


@dataclass(frozen=True)
class PaperFigure:
    """A cell of the paper; None where it prints nothing."""

    model: str
    """As the paper calls it."""
    accuracy_percent: float | None
    """None: it did not converge, the paper's ✗."""
    attention_operations_millions: float | None = None
    attention_energy_uj: float | None = None
    """Of one product of Q, K and V (Tab. 1)."""
    operations_millions: float | None = None
    energy_uj: float | None = None
    """Of the whole network (Tab. 2)."""


_Key = tuple[str, str, int]  # attention, neuron, time steps


def _row(accuracies: dict[str, float | None], time_steps: int, neuron: str = "lif") -> dict[_Key, float | None]:
    return {(attention, neuron, time_steps): accuracy for attention, accuracy in accuracies.items()}


def _steps(accuracies: dict[int, float]) -> dict[_Key, float | None]:
    return {("ssa", "lif", time_steps): accuracy for time_steps, accuracy in accuracies.items()}


_ACCURACIES: dict[str, dict[_Key, float | None]] = {
    "cifar10": _row({"identity": 93.96, "leaky_relu": 93.85, "relu": 94.34, "softmax": 94.97}, 4)
    | _row({"softmax_float_value": 95.17}, 4)
    | _row({"identity": 92.39, "relu": 92.98, "leaky_relu": 92.88, "softmax": 93.11}, 1)
    | _row({"ssa": 95.33}, 4, "if")
    | _steps({1: 93.51, 2: 93.59, 4: 95.19, 6: 95.34}),
    "cifar100": _row({"identity": 76.94, "leaky_relu": 76.73, "relu": 77.00, "softmax": 77.92}, 4)
    | _row({"softmax_float_value": 78.37}, 4)
    | _row({"identity": 74.28, "relu": 74.32, "leaky_relu": 74.31, "softmax": 74.37}, 1)
    | _row({"ssa": 78.14}, 4, "if")
    | _steps({1: 74.36, 2: 76.28, 4: 77.86, 6: 78.61}),
    "imagenet": _row({"identity": None, "relu": None, "leaky_relu": None}, 4)
    | _row({"softmax": 72.70, "softmax_float_value": 73.96}, 4)
    | _steps({1: 70.14, 2: 71.09, 4: 73.38, 6: 73.70}),
    "cifar10dvs": _row({"identity": 79.40, "leaky_relu": 79.80, "relu": 79.40, "softmax": 80.00}, 16)
    | _steps({10: 78.9, 16: 80.9}),
    "dvs128": _steps({10: 96.9, 16: 98.3}),
}

# Tab. 1: operations in millions and µJ of one product of Q, K and V.
_COSTS: dict[tuple[str, _Key], tuple[float, float]] = {
    ("cifar10", ("ssa", "lif", 4)): (1.1, 0.990),
    ("cifar100", ("ssa", "lif", 4)): (1.3, 1.170),
    ("cifar10dvs", ("ssa", "lif", 16)): (0.66, 0.594),
    ("cifar10", ("softmax", "lif", 4)): (6.6, 30.0),
    ("cifar100", ("softmax", "lif", 4)): (6.6, 30.0),
    ("cifar10dvs", ("softmax", "lif", 16)): (19.1, 88.0),
} | {
    (data_set, (attention, "lif", time_steps)): cost
    for data_set, time_steps, cost in (
        ("cifar10", 4, (6.3, 29.0)),
        ("cifar100", 4, (6.3, 29.0)),
        ("cifar10dvs", 16, (16.8, 77.0)),
    )
    for attention in ("identity", "relu", "leaky_relu")
}


def paper_time_steps(data_set: str) -> list[int]:
    """Numbers of steps that the paper tried with its own attention."""
    rows = _ACCURACIES.get(data_set, {})
    return sorted(steps for attention, neuron, steps in rows if (attention, neuron) == ("ssa", "lif"))


def paper_sizes(data_set: str) -> dict[tuple[int, int], ModelConfig]:
    """The models of a data set that the paper prints, by depth and width, smallest first."""
    return {(config.depth, config.embed_dim): config for config, _ in _published(data_set)}


def _published(data_set: str) -> list[tuple[ModelConfig, PaperRow]]:
    presets = (get_preset(name) for name in list_models(f"spikformer_*_{data_set}"))
    return [(preset.config, preset.paper) for preset in presets if preset.paper is not None]


def paper_figure(data_set: str, config: ModelConfig, *, by_size: bool) -> PaperFigure | None:
    """The paper's cell for a model on a data set, if it has one.

    `by_size` looks for a model as deep and wide as this one. Without it, what counts is attention, neuron and time
    steps, and the figure is of the one model that the paper ablates, whatever size this one has.
    """
    if data_set not in _REFERENCES:
        return None
    reference = get_preset(_REFERENCES[data_set]).config
    if config.image_size != reference.image_size:  # weights carried over to larger images are another table's
        return None
    key: _Key = (config.attention, config.neuron, config.time_steps)
    is_usual = key == ("ssa", "lif", reference.time_steps)
    if by_size:
        return _of_size(data_set, config) if is_usual else None
    if key not in _ACCURACIES[data_set]:
        return None
    operations, energy = _COSTS.get((data_set, key), (None, None))
    whole = _of_size(data_set, reference) if is_usual else None
    figure = whole or PaperFigure(f"Spikformer-{reference.depth}-{reference.embed_dim}", _ACCURACIES[data_set][key])
    return replace(figure, attention_operations_millions=operations, attention_energy_uj=energy)


def _of_size(data_set: str, config: ModelConfig) -> PaperFigure | None:
    for published, row in _published(data_set):
        if (published.depth, published.embed_dim) == (config.depth, config.embed_dim):
            return PaperFigure(
                f"Spikformer-{published.depth}-{published.embed_dim}",
                row.accuracy_percent,
                operations_millions=row.operations_giga and row.operations_giga * 1e3,
                energy_uj=row.energy_mj and row.energy_mj * 1e3,
            )
    return None
