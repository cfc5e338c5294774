"""Recipe: everything that decides how a model is trained, validated when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite
from typing import Any, Literal, get_args

from spikformer.config import ModelConfig
from spikformer.data.augmentation import Augmentation
from spikformer.messages import did_you_mean, printable, shown

Precision = Literal["float32", "bfloat16", "float16"]
_ADDED = ("max_samples", "freeze", "patience")


@dataclass(frozen=True)
class Recipe:
    """How to train a model on a data set. The defaults are the paper's for CIFAR; `recipes` holds all of them."""

    data_set: str = "cifar10"
    """A name that `spikformer data` knows."""
    model: ModelConfig = field(default_factory=ModelConfig)
    augmentation: Augmentation = field(default_factory=Augmentation)

    epochs: int = 300
    """Passes over the training split, warm-up and cosine."""
    cooldown_epochs: int = 0
    """Passes after those, at the final learning rate."""
    mixing_epochs: int | None = None
    """After so many, mixup and cutmix are off; None: never."""

    batch_size: int = 128
    """Samples of one iteration, over all devices and accumulated parts."""
    accumulate: int = 1
    """Parts in which a device takes its share of a batch, to save memory; norms then see parts."""

    learning_rate: float = 5e-4
    """The peak. It is not rescaled by the batch size."""
    final_learning_rate: float = 1e-5
    warmup_epochs: float = 20
    warmup_learning_rate: float = 1e-5
    weight_decay: float = 0.06
    """Of AdamW; never on biases, norms and neurons."""
    clip_gradient: float | None = None
    """Largest norm of the gradient; None lets it be."""
    ema_decay: float | None = None
    """Keep a moving average of the weights, and validate, test and save that; None: no average."""

    precision: Precision = "float32"
    """Of products. Membranes, Q Kᵀ V and weights stay in float32."""
    sync_norms: bool = False
    """Norms see the samples of all devices."""
    compile: bool = False
    """Compile the model with torch.compile: minutes at first, less memory and time later."""

    max_samples: int | None = None
    """Train on at most so many samples, taken from all over the training split; None: on all."""
    freeze: tuple[str, ...] = ()
    """Shell patterns of parameters that do not learn, such as "stem.*"; statistics of norms still adapt."""
    patience: int | None = None
    """Stop after so many epochs without a better validation accuracy; None: never."""

    validation_share: float = 0.1
    """Of the training split, held out where the set has no validation split; 0 trains on all and selects nothing."""
    seed: int = 0
    """Decides initial weights, the order of samples and every augmentation."""

    def __post_init__(self) -> None:
        if not isinstance(self.data_set, str):
            raise ValueError(f"data_set must be a name, got {shown(self.data_set)}.")
        for name, least in (("epochs", 1), ("cooldown_epochs", 0), ("batch_size", 1), ("accumulate", 1), ("seed", 0)):
            self._check_count(name, least)
        if self.mixing_epochs is not None:
            self._check_count("mixing_epochs", 0)
            if not (self.augmentation.mixup or self.augmentation.cutmix):
                raise ValueError("mixing_epochs has no effect without mixup or cutmix; leave it None.")
        for name in ("max_samples", "patience"):
            if getattr(self, name) is not None:
                self._check_count(name, 1)
        patterns: Any = self.freeze
        listed = isinstance(patterns, list | tuple) and len(patterns) <= 1000
        if not listed or not all(isinstance(pattern, str) and pattern.isprintable() for pattern in patterns):
            raise ValueError(f"freeze must be at most 1000 patterns of parameter names, got {shown(patterns)}.")
        object.__setattr__(self, "freeze", tuple(patterns))
        for name in ("final_learning_rate", "warmup_epochs", "warmup_learning_rate", "weight_decay"):
            self._check_number(name, 0.0, inclusive=True)
        self._check_number("learning_rate", 0.0, inclusive=False)
        if self.clip_gradient is not None:
            self._check_number("clip_gradient", 0.0, inclusive=False)
        if self.ema_decay is not None and not (_is_number(self.ema_decay) and 0 < self.ema_decay < 1):
            raise ValueError(f"ema_decay must be between 0 and 1, or None, got {shown(self.ema_decay)}.")
        if not (_is_number(self.validation_share) and 0 <= self.validation_share < 1):
            raise ValueError(f"validation_share must be at least 0 and below 1, got {shown(self.validation_share)}.")
        for name in ("sync_norms", "compile"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be True or False, got {shown(getattr(self, name))}.")
        if self.precision not in get_args(Precision):
            raise ValueError(f"precision must be one of {', '.join(get_args(Precision))}, got {shown(self.precision)}.")

    @property
    def total_epochs(self) -> int:
        return self.epochs + self.cooldown_epochs

    def mixes(self, epoch: int) -> bool:
        """Whether mixup and cutmix are on in an epoch, counted from 0."""
        return self.mixing_epochs is None or epoch < self.mixing_epochs

    def override(self, **changes: Any) -> Recipe:
        """A copy with other settings; `model` and `augmentation` may be mappings of those of theirs that change.

        recipe.override(epochs=100, model={"time_steps": 2})
        """
        for part in ("model", "augmentation"):
            if isinstance(given := changes.get(part), Mapping):
                own = getattr(self, part)
                _check_names(f"{part} of a recipe", given, own)
                changes[part] = replace(own, **given)
        _check_names("recipe", changes, self)
        return replace(self, **changes)

    def changes_from(self, other: Recipe) -> dict[str, Any]:
        """What to `override` in the other recipe, so that it becomes this one."""
        changes: dict[str, Any] = {}
        for each in fields(self):
            own, theirs = getattr(self, each.name), getattr(other, each.name)
            if own == theirs:
                continue
            if each.name in ("model", "augmentation"):
                own = {part.name: getattr(own, part.name) for part in fields(own) if part.init}
                own = {name: value for name, value in own.items() if value != getattr(theirs, name)}
            changes[each.name] = own
        return changes

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_dict` was called on; every field must be there, but for those that version 0.1 lacked."""
        values = {name: getattr(cls, name) for name in _ADDED} | dict(values)
        names = {each.name for each in fields(cls)}
        if names != set(values):
            wrong = min(names ^ set(values))
            expected = ", ".join(sorted(names))
            raise ValueError(f"A recipe has exactly the fields {expected}; {shown(wrong)} is not right.")
        try:
            model, augmentation = ModelConfig.from_dict(values["model"]), Augmentation(**values["augmentation"])
        except (TypeError, OverflowError) as error:
            raise ValueError(f"A recipe's model and augmentation must hold their fields; {printable(error)}.") from None
        return cls(**{**values, "model": model, "augmentation": augmentation})

    def _check_count(self, name: str, least: int) -> None:
        value: Any = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
            raise ValueError(f"{name} must be an integer of at least {least}, got {shown(value)}.")

    def _check_number(self, name: str, least: float, *, inclusive: bool) -> None:
        value: Any = getattr(self, name)
        if not _is_number(value) or value < least or (value == least and not inclusive):
            bound = f"{'at least' if inclusive else 'above'} {least:g}"
            raise ValueError(f"{name} must be {bound} and finite, got {shown(value)}.")


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings under names with dots, such as model.time_steps."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flat_settings(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def _check_names(what: str, given: Mapping[str, Any], settings: Any) -> None:
    names = [each.name for each in fields(settings)]
    for name in given:
        if name not in names:
            hint = did_you_mean(str(name), names, f"choose from {', '.join(names)}.")
            raise ValueError(f"There is no setting {name!r} in the {what}; {hint}")


def _is_number(value: Any) -> bool:
    """A finite number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    except OverflowError:  # an int of hundreds of digits
        return False
