"""Ablations: what each grid varies, and how the cells of several seeds become one line.

    for variant in variants("attention", config, "cifar10"):
        variant.applied_to(config)

Training the cells is up to the caller; this file knows what they are, what the paper found, and how to summarise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from spikformer.analysis.architectures import sized_like
from spikformer.config import ModelConfig, NetworkConfig
from spikformer.errors import FieldError, UnknownNameError
from spikformer.paper import ABLATED, ABLATIONS, ATTENTION_COSTS, NETWORKS_BY_DATA_SET, PaperRow, VariantKey
from spikformer.presets import get_preset

Grid = Literal["attention", "time_steps", "neuron", "size", "architecture", "recipe"]
Outcome = Literal["finished", "diverged", "failed"]

# The paper's, then our controls: no mixing of tokens, and Q and K that never learn.
_ATTENTIONS = ("ssa", "softmax", "softmax_float_value", "identity", "relu", "leaky_relu", "none", "random")
_UNSCALED = ("softmax", "softmax_float_value", "none")
_NEURONS = ("lif", "if", "plif")
_STILL_STEPS = (1, 2, 4, 6)
_VARIED: dict[Grid, tuple[str, ...]] = {
    "attention": ("attention",),
    "time_steps": ("time_steps",),
    "neuron": ("neuron",),
    "size": (),  # relative to the recipe's, which may be overridden
    "architecture": ("attention", "pool_after"),
    "recipe": (),  # settings of training, which the caller knows
}


@dataclass(frozen=True)
class PaperFigure:
    """A cell of the paper's tables; None where it prints nothing."""

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


class Variant(NamedTuple):
    """One row of a grid."""

    name: str
    overrides: dict[str, Any]
    """Of the recipe's ModelConfig."""
    paper: PaperFigure | None
    config: NetworkConfig | None = None
    """Of another architecture, in place of the recipe's and of overrides."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """Of the recipe, besides its model."""

    def applied_to(self, config: NetworkConfig) -> NetworkConfig:
        return self.config or config.override(**self.overrides)


def check_grid(word: str) -> Grid:
    """The grid of that name."""
    for grid in get_args(Grid):
        if word == grid:
            return grid
    raise UnknownNameError("ablation", word, get_args(Grid))


def varied_fields(grid: Grid, *, events: bool = False) -> tuple[str, ...]:
    """Fields of a ModelConfig that a grid sets itself, and that may not be overridden."""
    return () if events and grid == "time_steps" else _VARIED[grid]


def variants(grid: Grid, config: NetworkConfig, data_set: str, *, events: bool = False) -> list[Variant]:
    """The rows of a grid for a recipe's model, a Spikformer: most grids are its paper's.

    Of `events`, time steps are frames, and no more than the recipe's.
    """
    if not isinstance(config, ModelConfig):
        message = (
            f"This ablation starts from the recipe of a Spikformer, got a {config.title}; the grid 'recipe' takes any."
        )
        raise FieldError("config", message)
    if grid == "architecture":
        return [Variant(name, {}, None, sized) for name, sized in sized_like(config).items()]
    makers = {
        "attention": lambda: {word: _with_attention(word) for word in _ATTENTIONS},
        "time_steps": lambda: _with_time_steps(config, data_set, events),
        "neuron": lambda: {word: _with_neuron(word, config) for word in _NEURONS},
        "size": lambda: _with_sizes(config, data_set),
    }
    made: dict[str, dict[str, Any]] = makers[grid]()
    return [
        Variant(name, overrides, paper_figure(data_set, config.override(**overrides), by_size=grid == "size"))
        for name, overrides in made.items()
    ]


def _with_attention(word: str) -> dict[str, Any]:
    """Fields that have no effect under a variant go back to what they are when unused."""
    overrides: dict[str, Any] = {"attention": word}
    if word in _UNSCALED:
        overrides["learnable_scale"] = False
    if word == "none":
        overrides["qk_pool"] = 1
    return overrides


def _with_neuron(word: str, config: ModelConfig) -> dict[str, Any]:
    leaks = word != "if"
    return {"neuron": word, "tau": config.tau if leaks else ModelConfig.tau}


def _with_time_steps(config: ModelConfig, data_set: str, events: bool) -> dict[str, dict[str, Any]]:
    counts: Iterable[int] = _STILL_STEPS
    if events:
        whole = config.time_steps
        printed = {key.time_steps for key in ABLATIONS.get(data_set, {}) if key[:2] == ("ssa", "lif")}
        tried = (steps for steps in printed if steps < whole)
        counts = sorted({max(1, whole // 4), max(1, whole // 2), whole, *tried})
    return {str(count): {"time_steps": count} for count in counts}


def _with_sizes(config: ModelConfig, data_set: str) -> dict[str, dict[str, Any]]:
    """The paper's sizes for a model that is one of them; else half and all of the depth and the width."""
    sizes = {(model.depth, model.embed_dim): model.num_heads for model, _ in _published(data_set)}
    if len(sizes) < 2 or (config.depth, config.embed_dim) not in sizes:
        depths = dict.fromkeys((max(1, config.depth // 2), config.depth))
        sizes = {(depth, width): _heads(width, config) for width in _widths(config) for depth in depths}
    return {
        f"{depth}-{width}": {"depth": depth, "embed_dim": width, "num_heads": heads}
        for (depth, width), heads in sizes.items()
    }


def _widths(config: ModelConfig) -> list[int]:
    """Half the width, where the network's stages can still halve it, and all of it."""
    half = config.embed_dim // 2
    halvings = 2 ** (len(config.pool_stages) - 1)
    return [half, config.embed_dim] if half and half % halvings == 0 else [config.embed_dim]


def _heads(width: int, config: ModelConfig) -> int:
    """As many as keep the features of a head, if that comes out even."""
    return width // config.head_dim if width % config.head_dim == 0 else 1


def paper_figure(data_set: str, config: ModelConfig, *, by_size: bool) -> PaperFigure | None:
    """The paper's cell for a model on a data set, if it has one.

    `by_size` looks for a model as deep and wide as this one. Without it, what counts is attention, neuron and time
    steps, and the figure is of the one model that the paper ablates, whatever size this one has.
    """
    if data_set not in ABLATED:
        return None
    ablated = get_preset(ABLATED[data_set]).config
    if config.image_size != ablated.image_size:  # weights carried over to larger images are another table's
        return None
    key = VariantKey(config.attention, config.neuron, config.time_steps)
    is_unchanged = key == ("ssa", "lif", ablated.time_steps)
    if by_size:
        return _figure_of_size(data_set, config) if is_unchanged else None
    if key not in ABLATIONS[data_set]:
        return None
    figure = PaperFigure(f"Spikformer-{ablated.depth}-{ablated.embed_dim}", ABLATIONS[data_set][key])
    if is_unchanged:
        figure = _figure_of_size(data_set, ablated) or figure
    cost = ATTENTION_COSTS.get(data_set, {}).get(key.attention)
    if cost is None or key[1:] != ("lif", ablated.time_steps):
        return figure
    return replace(
        figure,
        attention_operations_millions=float(cost.operations_millions),
        attention_energy_uj=float(cost.energy_uj) if cost.energy_uj else None,
    )


def _figure_of_size(data_set: str, config: ModelConfig) -> PaperFigure | None:
    for published, row in _published(data_set):
        if (published.depth, published.embed_dim) == (config.depth, config.embed_dim):
            return PaperFigure(
                f"Spikformer-{published.depth}-{published.embed_dim}",
                row.accuracy_percent,
                operations_millions=row.operations_giga and row.operations_giga * 1e3,
                energy_uj=row.energy_mj and row.energy_mj * 1e3,
            )
    return None


def _published(data_set: str) -> list[tuple[ModelConfig, PaperRow]]:
    """The spiking networks of a data set that the paper prints, smallest first."""
    rows = NETWORKS_BY_DATA_SET.get(data_set, {})
    networks = ((get_preset(name).config, row) for name, row in rows.items())
    return [(config, row) for config, row in networks if config.neuron == "lif"]


# What came out.


@dataclass(frozen=True)
class CellResult:
    """One training run: a variant with a seed."""

    variant: str
    seed: int
    outcome: Outcome
    figures: Mapping[str, float] = field(default_factory=dict)
    """Accuracies as shares; operations and energy (mJ) of one sample. Nothing that was not measured."""


class Spread(NamedTuple):
    """Several seeds' figure."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def std(self) -> float | None:
        """Of the sample (n − 1); one value has none."""
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Line:
    """One variant over all its seeds; cells that did not finish are counted and have no figures."""

    variant: Variant
    cells: tuple[CellResult, ...]

    def num_cells(self, outcome: Outcome) -> int:
        return sum(cell.outcome == outcome for cell in self.cells)

    def figure(self, name: str) -> Spread | None:
        values = tuple(cell.figures[name] for cell in self.cells if name in cell.figures)
        return Spread(values) if values else None


def summarise(variants: Sequence[Variant], cells: Iterable[CellResult]) -> list[Line]:
    """A line for each variant, its cells by seed."""
    by_seed = sorted(cells, key=lambda cell: cell.seed)
    return [Line(each, tuple(cell for cell in by_seed if cell.variant == each.name)) for each in variants]
