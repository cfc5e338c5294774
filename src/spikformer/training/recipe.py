"""Recipe: everything that decides how a model is trained, validated when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from sys import float_info
from typing import Any, Literal, get_args

from spikformer.config import CONVENTIONAL, ModelConfig, NetworkConfig
from spikformer.data.augmentation import Augmentation
from spikformer.data.options import PreprocessingOptions
from spikformer.errors import FieldError, did_you_mean, printable, shown
from spikformer.models.registry import architecture_of, get_architecture
from spikformer.validation import check_fields, choice, count, flag, is_integer, number

Precision = Literal["float32", "bfloat16", "float16"]
Optimiser = Literal["adamw", "sgd", "lamb", "muon"]
Schedule = Literal["cosine", "staircase"]
Loss = Literal["mean_logit", "tet"]
_DECIDED_BY_DATA = ("model.num_classes", "model.in_channels")
_PARTS = ("model", "augmentation", "preprocessing")
_REQUIRED = (
    *("data_set", "model", "augmentation", "epochs", "cooldown_epochs", "mixing_epochs", "batch_size", "accumulate"),
    *("learning_rate", "final_learning_rate", "warmup_epochs", "warmup_learning_rate", "weight_decay"),
    *("clip_gradient", "ema_decay", "precision", "sync_norms", "compile", "validation_share", "seed"),
)
"""Fields that every release has written; any other that a file lacks takes its default."""
_LARGEST_INT = 2**63 - 1


@dataclass(frozen=True)
class Recipe:
    """How to train a model on a data set. The defaults are the paper's for CIFAR; `recipes` holds all of them."""

    data_set: str = "cifar10"
    """A name that `spikformer data` knows."""
    model: NetworkConfig = field(default_factory=ModelConfig)
    """Of any architecture, which its type decides."""
    augmentation: Augmentation = field(default_factory=Augmentation)
    preprocessing: PreprocessingOptions = field(default_factory=PreprocessingOptions)
    """How samples are made, where that is not the data set's own way; weights remember it."""

    epochs: int = count(300)
    """Passes over the training split, with the warm-up and before the cool-down."""
    cooldown_epochs: int = count(0, least=0)
    """Passes after those, at the final learning rate."""
    mixing_epochs: int | None = count(None, least=0, optional=True)
    """After so many, mixup and cutmix are off; None: never."""

    batch_size: int = count(128)
    """Samples of one iteration, over all devices and accumulated parts."""
    accumulate: int = count(1)
    """Parts in which a device takes its share of a batch, to save memory; norms then see parts."""

    optimiser: Optimiser = choice("adamw", get_args(Optimiser))
    """AdamW, SGD with momentum 0.9, LAMB, or Muon for matrices and kernels with AdamW for the rest."""
    learning_rate: float = number(5e-4, above=0, most=float_info.max)
    """The peak. It is not rescaled by the batch size."""
    schedule: Schedule = choice("cosine", get_args(Schedule))
    """From the peak to the final learning rate by half a cosine, or a tenth of it after every `drop_epochs`."""
    drop_epochs: int | None = count(None, optional=True)
    """Of a staircase: how long each of its rates lasts."""
    final_learning_rate: float = number(1e-5, least=0)
    """Where the cosine ends, and that of the cool-down."""
    warmup_epochs: float = number(20, least=0)
    warmup_learning_rate: float = number(1e-5, least=0)
    weight_decay: float = number(0.06, least=0)
    """Of matrices and kernels; never of biases, norms and neurons."""
    loss: Loss = choice("mean_logit", get_args(Loss))
    """Cross-entropy of the mean readout, or at every time step with a term that keeps readouts near 1 (`tet`)."""
    tet_lambda: float = number(1e-3, least=0, most=1)
    """λ of that term: (1 − λ)·mean over steps of the cross-entropy + λ·mean of (readout − 1)²."""
    distillation: float = number(0.0, least=0, most=1)
    """α of (1 − α)·loss of the labels + α·loss of a teacher's answers, whose weights are given to `train`."""
    distillation_temperature: float = number(2.0, above=0)
    """τ, by which the logits of both are divided."""
    spike_penalty: float = number(0.0, least=0)
    """Weight of the share of synaptic operations that spikes cause, which is added to the loss."""
    penalty_epochs: float = number(0.0, least=0)
    """Epochs in which this weight rises from 0."""
    clip_gradient: float | None = number(None, above=0, optional=True)
    """Largest norm of the gradient; None: no limit."""
    ema_decay: float | None = number(None, above=0, below=1, optional=True)
    """Keep a moving average of the weights, and validate, test and save that; None: no average."""

    step_schedule: tuple[int, ...] = ()
    """Time steps in as many equal parts of the epochs, such as (1, 1, 1, 4); (): the model's throughout."""
    image_schedule: tuple[int, ...] = ()
    """Height and width of training pictures, likewise; (): the model's throughout."""
    whiten: bool = flag(False)
    """Whether the first convolution starts as whitening of the training pictures' patches."""

    precision: Precision = choice("float32", get_args(Precision))
    """Of products. Membranes, Q Kᵀ V and weights stay in float32."""
    sync_norms: bool = flag(False)
    """Norms see the samples of all devices."""
    compile: bool = flag(False)
    """Compile the model with torch.compile: minutes at first, less memory and time later."""

    max_samples: int | None = count(None, most=_LARGEST_INT, optional=True)
    """Train on at most so many samples, taken from all over the training split; None: on all."""
    freeze: tuple[str, ...] = ()
    """Shell patterns of parameters that do not learn, such as "stem.*"; statistics of norms still adapt."""
    patience: int | None = count(None, optional=True)
    """Stop after so many epochs without a better validation accuracy; None: never."""

    validation_share: float = number(0.1, least=0, below=1)
    """Of the training split, held out where the set has no validation split; 0 trains on all and selects nothing."""
    seed: int = count(0, least=0, most=_LARGEST_INT)
    """Decides initial weights, the order of samples and every augmentation."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.model, NetworkConfig):
            raise FieldError("model", f"model must be the config of a network, got {shown(self.model)}.")
        if not isinstance(self.data_set, str):
            raise FieldError("data_set", f"data_set must be a name, got {shown(self.data_set)}.")
        if self.mixing_epochs is not None and not (self.augmentation.mixup or self.augmentation.cutmix):
            raise FieldError("mixing_epochs", "mixing_epochs has no effect without mixup or cutmix; leave it None.")
        if (self.schedule == "staircase") != (self.drop_epochs is not None):
            raise FieldError(
                "drop_epochs",
                f"drop_epochs must be given with schedule='staircase' and left out otherwise, got {self.drop_epochs} "
                f"with {self.schedule!r}.",
            )
        if self.loss != "tet" and self.tet_lambda != Recipe.tet_lambda:
            raise FieldError("tet_lambda", "tet_lambda has no effect without loss='tet'; leave it out.")
        self._check_objective()
        self._check_schedules()
        patterns: Any = self.freeze
        listed = isinstance(patterns, list | tuple) and len(patterns) <= 1000
        if not listed or not all(isinstance(pattern, str) and pattern.isprintable() for pattern in patterns):
            raise FieldError("freeze", f"freeze must be patterns of parameter names, got {shown(patterns)}.")
        object.__setattr__(self, "freeze", tuple(patterns))

    def _check_objective(self) -> None:
        for name, needed in (("distillation_temperature", "distillation"), ("penalty_epochs", "spike_penalty")):
            if not getattr(self, needed) and getattr(self, name) != getattr(Recipe, name):
                raise FieldError(name, f"{name} has no effect without {needed}; leave it out.")
        if self.spike_penalty and self.compile:
            raise FieldError("compile", "compile is not for spike_penalty, which watches every layer; leave it False.")
        if self.spike_penalty and self.model.neuron in CONVENTIONAL:
            raise FieldError(
                "spike_penalty", f"spike_penalty is for spikes, which neuron={self.model.neuron!r} does not make."
            )

    def _check_schedules(self) -> None:
        for name, last in (("step_schedule", self.model.time_steps), ("image_schedule", self._side())):
            parts: Any = getattr(self, name)
            listed = isinstance(parts, list | tuple) and len(parts) <= 1000
            if not listed or not all(is_integer(part) and part >= 1 for part in parts):
                raise FieldError(name, f"{name} must list integers of at least 1, got {shown(parts)}.")
            object.__setattr__(self, name, tuple(parts))
            if parts and parts[-1] != last:
                raise FieldError(
                    name,
                    f"{name} must end with what the model is evaluated at, {last}, got {shown(parts)}; pass another or "
                    "an empty one.",
                )
        for steps in {*self.step_schedule}:
            self.model.override(time_steps=steps)
        for side in {*self.image_schedule}:
            if side != self._side():
                self.model.override(image_size=None).check_sample((side, side), self.model.time_steps)

    def _side(self) -> int | None:
        """Of square pictures; None where the model takes others, or any."""
        height, width = self.model.image_size or (None, None)
        return height if height == width else None

    def time_steps(self, epoch: int) -> int:
        """T in an epoch of training, counted from 0."""
        return self._scheduled(self.step_schedule, epoch) or self.model.time_steps

    def image_size(self, epoch: int) -> tuple[int, int] | None:
        """Height and width of pictures in an epoch of training, counted from 0; None where the model leaves it open."""
        side = self._scheduled(self.image_schedule, epoch)
        return (side, side) if side else self.model.image_size

    def _scheduled(self, parts: tuple[int, ...], epoch: int) -> int | None:
        """The entry for an epoch; the cool-down has the last."""
        return parts[min(epoch * len(parts) // self.epochs, len(parts) - 1)] if parts else None

    @property
    def total_epochs(self) -> int:
        return self.epochs + self.cooldown_epochs

    def mixes(self, epoch: int) -> bool:
        """Whether mixup and cutmix are on in an epoch, counted from 0."""
        return self.mixing_epochs is None or epoch < self.mixing_epochs

    def override(self, **changes: Any) -> Recipe:
        """A copy with other settings; `model` and `augmentation` may be mappings of those of theirs that change.

        recipe.override(epochs=100, model={"time_steps": 2})
        recipe.override(model=SpikingformerConfig(depth=2))      another architecture
        """
        for part in _PARTS:
            if isinstance(given := changes.get(part), Mapping):
                own = getattr(self, part)
                check_settings(part, given, own)
                changes[part] = replace(own, **given)
        check_settings("recipe", changes, self)
        return replace(self, **changes)

    def changes_from(self, other: Recipe) -> dict[str, Any]:
        """What to `override` in the other recipe, so that it becomes this one."""
        changes: dict[str, Any] = {}
        for each in fields(self):
            own, theirs = getattr(self, each.name), getattr(other, each.name)
            if own == theirs:
                continue
            if each.name in _PARTS and type(own) is type(theirs):
                own = {part.name: getattr(own, part.name) for part in fields(own) if part.init}
                own = {name: value for name, value in own.items() if value != getattr(theirs, name)}
            changes[each.name] = own
        return changes

    def settings_unlike(self, other: Recipe) -> dict[str, Any]:
        """Settings of this recipe that are not the other's, under names such as model.time_steps.

        Those that the data set decides once it is open are left out.
        """
        ours, theirs = (flat_settings(each.to_dict()) for each in (self, other))
        names = (name for name in ours | theirs if name not in _DECIDED_BY_DATA)
        return {name: ours.get(name) for name in names if ours.get(name) != theirs.get(name)}

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "architecture": architecture_of(self.model).name}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_dict` was called on; a field that an earlier release did not write takes its default."""
        values = completed(values)
        names = {"architecture", *(each.name for each in fields(cls))}
        if names != set(values):
            wrong = min(names ^ set(values))
            raise FieldError(wrong, f"A recipe {'lacks' if wrong in names else 'has no'} field {shown(wrong)}.")
        architecture = values.pop("architecture")
        if not isinstance(architecture, str):
            raise FieldError("architecture", f"architecture must be a name, got {shown(architecture)}.")
        config_type = get_architecture(architecture).config_type
        makers: dict[str, Callable[[Any], Any]] = {
            "model": config_type.from_dict,
            "augmentation": lambda given: Augmentation(**given),
            "preprocessing": lambda given: PreprocessingOptions(**given),
        }
        parts = {}
        for part, make in makers.items():
            if not isinstance(values[part], Mapping):
                raise FieldError(part, f"A recipe's {part} must be an object, got {shown(values[part])}.")
            try:
                parts[part] = make(values[part])
            except (TypeError, OverflowError) as error:
                raise FieldError(part, f"A recipe's {part} must hold its fields; {printable(error)}.") from None
        return cls(**values | parts)


def completed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a recipe.json, with those that earlier versions did not write: what they trained were Spikformers."""
    plain = Recipe()
    later = {each.name: getattr(plain, each.name) for each in fields(plain) if each.name not in _REQUIRED}
    return later | {"architecture": "spikformer", "preprocessing": {}} | dict(settings)


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under names with dots, such as model.time_steps."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def check_settings(part: str, given: Iterable[str], settings: Any) -> None:
    """Raise for a name that is not a field of a recipe, or of a part of it; a model's error names its architecture."""
    known = [each.name for each in fields(settings)]
    for name in given:
        if name not in known:
            owner = f"{architecture_of(settings).name} model" if isinstance(settings, NetworkConfig) else part
            every = f"its settings are {', '.join(known)}."
            hint = " ".join(filter(None, (did_you_mean(name, known, ""), every)))
            raise FieldError(str(name), f"A {owner} has no setting {shown(name)}; {hint}")
