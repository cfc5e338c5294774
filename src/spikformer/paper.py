"""Every number that the paper (arXiv:2209.15425) prints of its networks and of SEW-ResNet, once: Fig. 1, Tab. 1 to 7.

    NETWORKS["spikformer_8_512_imagenet"].energy_mj           Tab. 2, 3 and 4, by preset
    BASELINE["sew_resnet_34_imagenet"].energy_mj              Tab. 2, SEW-ResNet, which the paper compares itself with
    ABLATIONS["cifar10"]["softmax", "lif", 4]                 Tab. 1, 4, 5 and 6, accuracy by data set and variant
    ATTENTION_COSTS["cifar10"]["ssa"].energy_uj               Tab. 1, what one product of Q, K and V costs

Rows of other methods are left out. Costs are text where their digits matter: 0.990 is printed to three of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MAC_PJ, AC_PJ = 4.6, 0.9
"""Energy of a multiply-accumulate and of an accumulate, 32-bit floats at 45 nm (App. C.2)."""


@dataclass(frozen=True)
class PaperRow:
    """What the paper prints for a network; None where it prints nothing.

    Tab. 3 gives one number of parameters for both CIFAR sets; it is CIFAR-10's.
    """

    parameters_millions: float | None
    accuracy_percent: float
    operations_giga: float | None = None
    energy_mj: float | None = None
    unused_parameters: int = 0
    """Weights that the paper counts and the authors' network never uses."""


NETWORKS_BY_DATA_SET: dict[str, dict[str, PaperRow]] = {
    "imagenet": {  # Tab. 2
        "spikformer_8_384_imagenet": PaperRow(16.81, 70.24, 6.82, 7.734),
        "spikformer_6_512_imagenet": PaperRow(23.37, 72.46, 8.69, 9.417),
        "spikformer_8_512_imagenet": PaperRow(29.68, 73.38, 11.09, 11.577),
        "spikformer_10_512_imagenet": PaperRow(36.01, 73.68, 13.67, 13.899),
        "spikformer_8_768_imagenet": PaperRow(66.34, 74.81, 22.09, 21.477),
        "transformer_8_512_imagenet": PaperRow(29.68, 80.80, 8.33, 38.340),
    },
    "cifar10": {  # Tab. 3
        "spikformer_4_256_cifar10": PaperRow(4.15, 93.94),
        "spikformer_2_384_cifar10": PaperRow(5.76, 94.80),
        "spikformer_4_384_cifar10": PaperRow(9.32, 95.19),
        "transformer_4_384_cifar10": PaperRow(9.32, 96.73),
    },
    "cifar100": {  # Tab. 3
        "spikformer_4_256_cifar100": PaperRow(None, 75.96),
        "spikformer_2_384_cifar100": PaperRow(None, 76.95),
        "spikformer_4_384_cifar100": PaperRow(None, 77.86),
        "transformer_4_384_cifar100": PaperRow(None, 81.02),
    },
    # Tab. 4: five layer norms and a position embedding are counted and never used.
    "cifar10dvs": {"spikformer_2_256_cifar10dvs": PaperRow(2.59, 80.9, unused_parameters=18_944)},
    "dvs128": {"spikformer_2_256_dvs128": PaperRow(2.59, 98.3, unused_parameters=18_944)},
}
NETWORKS = {name: row for rows in NETWORKS_BY_DATA_SET.values() for name, row in rows.items()}

BASELINE: dict[str, PaperRow] = {  # Tab. 2
    "sew_resnet_34_imagenet": PaperRow(21.79, 67.04, 3.88, 4.035),
    "sew_resnet_50_imagenet": PaperRow(25.56, 67.78, 4.83, 4.890),
    "sew_resnet_101_imagenet": PaperRow(44.55, 68.76, 9.30, 8.913),
    "sew_resnet_152_imagenet": PaperRow(60.19, 69.26, 13.72, 12.891),
}
"""SEW-ResNet, with sums for joins: the accuracy is its authors', operations and energy are the paper's."""

# Tab. 3 again, Spikformer-4-384 after 400 epochs instead of 300.
ACCURACY_AFTER_400_EPOCHS = {"spikformer_4_384_cifar10": 95.51, "spikformer_4_384_cifar100": 78.21}

# Tab. 7: trained on ImageNet, fine-tuned on CIFAR at 224×224.
TRANSFER_ACCURACY: dict[str, dict[str, float]] = {
    "spikformer_4_384_imagenet": {"cifar10": 95.54, "cifar100": 79.96},
    "spikformer_8_384_imagenet": {"cifar10": 96.64, "cifar100": 82.09},
    "spikformer_8_512_imagenet": {"cifar10": 97.03, "cifar100": 83.83},
}

ABLATED = {
    "cifar10": "spikformer_4_384_cifar10",
    "cifar100": "spikformer_4_384_cifar100",
    "imagenet": "spikformer_8_512_imagenet",
    "cifar10dvs": "spikformer_2_256_cifar10dvs",
    "dvs128": "spikformer_2_256_dvs128",
}
"""The network that the paper ablates on each data set."""


class VariantKey(NamedTuple):
    """One variant of a data set's `ABLATED` network."""

    attention: str
    neuron: str
    time_steps: int


Accuracies = dict[VariantKey, float | None]


def _attentions(time_steps: int, **accuracies: float | None) -> Accuracies:
    return {VariantKey(attention, "lif", time_steps): percent for attention, percent in accuracies.items()}


def _time_steps(accuracies: dict[int, float]) -> Accuracies:
    return {VariantKey("ssa", "lif", time_steps): percent for time_steps, percent in accuracies.items()}


def _unchanged(data_set: str, time_steps: int) -> Accuracies:
    """The ablated network itself, whose row in Tab. 2, 3 or 4 the tables of ablations repeat."""
    return _time_steps({time_steps: NETWORKS[ABLATED[data_set]].accuracy_percent})


ABLATIONS: dict[str, Accuracies] = {
    "cifar10": _attentions(4, identity=93.96, leaky_relu=93.85, relu=94.34, softmax=94.97)  # Tab. 1
    | _attentions(4, softmax_float_value=95.17)  # Tab. 5
    | _time_steps({1: 93.51, 2: 93.59, 6: 95.34})
    | _unchanged("cifar10", 4)
    | _attentions(1, identity=92.39, relu=92.98, leaky_relu=92.88, softmax=93.11)  # Tab. 6
    | {VariantKey("ssa", "if", 4): 95.33},
    "cifar100": _attentions(4, identity=76.94, leaky_relu=76.73, relu=77.00, softmax=77.92)  # Tab. 1
    | _attentions(4, softmax_float_value=78.37)  # Tab. 5
    | _time_steps({1: 74.36, 2: 76.28, 6: 78.61})
    | _unchanged("cifar100", 4)
    | _attentions(1, identity=74.28, relu=74.32, leaky_relu=74.31, softmax=74.37)  # Tab. 6
    | {VariantKey("ssa", "if", 4): 78.14},
    "imagenet": _attentions(4, identity=None, relu=None, leaky_relu=None)  # Tab. 5
    | _attentions(4, softmax=72.70, softmax_float_value=73.96)
    | _time_steps({1: 70.14, 2: 71.09, 6: 73.70})
    | _unchanged("imagenet", 4),
    "cifar10dvs": _attentions(16, identity=79.40, leaky_relu=79.80, relu=79.40, softmax=80.00)  # Tab. 1
    | _time_steps({10: 78.9})  # Tab. 4
    | _unchanged("cifar10dvs", 16),
    "dvs128": _time_steps({10: 96.9}) | _unchanged("dvs128", 16),  # Tab. 4
}
"""Accuracy in percent; None where training did not converge, the paper's ✗."""


class AttentionCost(NamedTuple):
    """What one block spends on the product of Q, K and V, as printed; None where nothing is."""

    operations_millions: str
    energy_uj: str | None


def _costs(floats: tuple[str, str], softmax: tuple[str, str], ssa: tuple[str, str]) -> dict[str, AttentionCost]:
    """A_I, A_LeakyReLU and A_ReLU cost the same."""
    return {
        **dict.fromkeys(("identity", "leaky_relu", "relu"), AttentionCost(*floats)),
        "softmax": AttentionCost(*softmax),
        "ssa": AttentionCost(*ssa),
    }


ATTENTION_COSTS: dict[str, dict[str, AttentionCost]] = {
    "cifar10dvs": _costs(("16.8", "77"), ("19.1", "88"), ("0.66", "0.594")),
    "cifar10": _costs(("6.3", "29"), ("6.6", "30"), ("1.1", "0.990")),
    "cifar100": _costs(("6.3", "29"), ("6.6", "30"), ("1.3", "1.170")),
}
"""Tab. 1, at the time steps of the `ABLATED` network."""

FIGURE_1 = {"softmax": AttentionCost("77", "354.2"), "ssa": AttentionCost("5.5", None)}
"""Fig. 1: vanilla self-attention and SSA in one block of Spikformer-8-512."""
