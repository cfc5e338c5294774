"""Checked dataclass fields: what a value may be stands beside its default.

@dataclass(frozen=True)
class Config:
depth: int = count(4)
tau: float = number(2.0, least=1)

def __post_init__(self) -> None:
check_fields(self)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any

from spikformer.vocabulary import did_you_mean, shown

LARGEST = 1_000_000  # of any number: what is beyond is a mistake, or a file that means harm
_CHECK = "check"


class FieldError(ValueError):
    """A field with a value that it cannot have. `field` is its name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)  # both, so that it survives pickling
        self.field = field

    def __str__(self) -> str:
        return str(self.args[1])


def count(default: int, least: int = 1) -> Any:
    """An integer from `least` to a million."""

    def check(value: Any) -> str | None:
        if not is_integer(value) or value < least:
            return f"must be an integer of at least {least}"
        return None if value <= LARGEST else f"must be at most {LARGEST:,}"

    return _field(default, check)


def number(
    default: float | None, *, above: float | None = None, least: float | None = None, optional: bool = False
) -> Any:
    """A finite number, within bounds if there are any; None where that is an option."""

    def check(value: Any) -> str | None:
        if value is None and optional:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not -LARGEST <= value <= LARGEST:
            return f"must be a finite number{' or None' if optional else ''}, at most {LARGEST:,}"
        if above is not None and value <= above:
            return f"must be above {above:g}"
        return f"must be at least {least:g}" if least is not None and value < least else None

    return _field(default, check)


def flag(default: bool) -> Any:
    """True or False, and nothing that merely counts as such."""
    return _field(default, lambda value: None if isinstance(value, bool) else "must be True or False")


def choice(default: str, words: Sequence[str]) -> Any:
    """One of the words, which may become more while the program runs."""
    return _field(
        default,
        lambda value: None if isinstance(value, str) and value in words else f"must be one of {', '.join(words)}",
    )


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_fields(instance: Any) -> None:
    """Raise FieldError for the first field with a wrong value; NumPy's numbers become Python's."""
    for each in fields(instance):
        value = getattr(instance, each.name)
        if isinstance(value, Real) and type(value) not in (bool, int, float):
            value = int(value) if isinstance(value, Integral) else float(value)
            object.__setattr__(instance, each.name, value)
        expected = each.metadata[_CHECK](value) if _CHECK in each.metadata else None
        if expected:
            raise FieldError(each.name, f"{each.name} {expected}, got {shown(value)}.")


def check_field_names(kind: type, values: Mapping[str, Any]) -> None:
    """Raise FieldError for a name that is no field of a dataclass, with the nearest one that is."""
    known = [each.name for each in fields(kind)]
    for name in values:
        if name not in known:
            hint = did_you_mean(name, known, f"known fields are {', '.join(known)}.")
            raise FieldError(name, f"{kind.__name__} has no field {shown(name)}; {hint}")


def _field(default: Any, check: Callable[[Any], str | None]) -> Any:
    return field(default=default, metadata={_CHECK: check})
