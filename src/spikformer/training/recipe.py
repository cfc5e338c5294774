"""Recipe: everything that decides how a model is trained, validated when it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from sys import float_info
from typing import Any, Literal, get_args

from spikformer.config import ModelConfig
from spikformer.data.augmentation import Augmentation
from spikformer.validation import FieldError, check_fields, choice, count, did_you_mean, flag, number, printable, shown

Precision = Literal["float32", "bfloat16", "float16"]
_ADDED = ("max_samples", "freeze", "patience")
_LARGEST_INT = 2**63 - 1


@dataclass(frozen=True)
class Recipe:
    """How to train a model on a data set. The defaults are the paper's for CIFAR; `recipes` holds all of them."""

    data_set: str = "cifar10"
    """A name that `spikformer data` knows."""
    model: ModelConfig = field(default_factory=ModelConfig)
    augmentation: Augmentation = field(default_factory=Augmentation)

    epochs: int = count(300)
    """Passes over the training split, warm-up and cosine."""
    cooldown_epochs: int = count(0, least=0)
    """Passes after those, at the final learning rate."""
    mixing_epochs: int | None = count(None, least=0, optional=True)
    """After so many, mixup and cutmix are off; None: never."""

    batch_size: int = count(128)
    """Samples of one iteration, over all devices and accumulated parts."""
    accumulate: int = count(1)
    """Parts in which a device takes its share of a batch, to save memory; norms then see parts."""

    learning_rate: float = number(5e-4, above=0, most=float_info.max)
    """The peak. It is not rescaled by the batch size."""
    final_learning_rate: float = number(1e-5, least=0)
    warmup_epochs: float = number(20, least=0)
    warmup_learning_rate: float = number(1e-5, least=0)
    weight_decay: float = number(0.06, least=0)
    """Of AdamW; never on biases, norms and neurons."""
    clip_gradient: float | None = number(None, above=0, optional=True)
    """Largest norm of the gradient; None lets it be."""
    ema_decay: float | None = number(None, above=0, below=1, optional=True)
    """Keep a moving average of the weights, and validate, test and save that; None: no average."""

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
        if not isinstance(self.data_set, str):
            raise FieldError("data_set", f"data_set must be a name, got {shown(self.data_set)}.")
        if self.mixing_epochs is not None and not (self.augmentation.mixup or self.augmentation.cutmix):
            raise FieldError("mixing_epochs", "mixing_epochs has no effect without mixup or cutmix; leave it None.")
        patterns: Any = self.freeze
        listed = isinstance(patterns, list | tuple) and len(patterns) <= 1000
        if not listed or not all(isinstance(pattern, str) and pattern.isprintable() for pattern in patterns):
            raise FieldError("freeze", f"freeze must be patterns of parameter names, got {shown(patterns)}.")
        object.__setattr__(self, "freeze", tuple(patterns))

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
