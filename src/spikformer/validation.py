"""Checks of what users and files give.

    @dataclass(frozen=True)
    class Config:
        depth: int = count(4)
        tau: float = number(2.0, least=1)

        def __post_init__(self) -> None:
            check_fields(self)

What a value may be stands beside its default; `check_fields` raises a `FieldError` that names the field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any, Literal

from spikformer.errors import FieldError, did_you_mean, shown

Accelerator = Literal["auto", "cpu", "gpu"]
Split = Literal["train", "validation", "test"]
"""Words that functions and commands share."""

LARGEST = 1_000_000  # of any number: what is beyond is a mistake, or a malicious file
_CHECK = "check"


def count(default: int | None, least: int = 1, *, most: int = LARGEST, optional: bool = False) -> Any:
    """An integer from `least` to `most`; None where that is an option."""

    def check(value: Any) -> str | None:
        if value is None and optional:
            return None
        if not is_integer(value) or value < least:
            return f"must be an integer of at least {least}{' or None' if optional else ''}"
        return None if value <= most else f"must be at most {most:,}"

    return _field(default, check)


def number(
    default: float | None,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float = LARGEST,
    optional: bool = False,
) -> Any:
    """A finite number, within bounds if there are any; None where that is an option."""

    def check(value: Any) -> str | None:
        if value is None and optional:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not -most <= value <= most:
            return f"must be a finite number{' or None' if optional else ''}, at most {most:,}"
        if above is not None and value <= above:
            return f"must be above {above:g}"
        if below is not None and value >= below:
            return f"must be below {below:g}"
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


def counts(default: tuple[int, ...], longest: int, *, most: int = LARGEST) -> Any:
    """A tuple of 1 to `longest` integers, each from 1 to `most`."""

    def check(value: Any) -> str | None:
        listed = isinstance(value, tuple) and 1 <= len(value) <= longest
        if not listed or not all(is_integer(entry) and 1 <= entry <= most for entry in value):
            return f"must list 1 to {longest} integers from 1 to {most:,}"
        return None

    return _field(default, check)


def is_integer(value: Any) -> bool:
    """NumPy's integers are; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


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
    """Raise FieldError for a name that is not a field of a dataclass, and suggest the nearest."""
    known = [each.name for each in fields(kind)]
    for name in values:
        if name not in known:
            hint = did_you_mean(name, known, f"known fields are {', '.join(known)}.")
            raise FieldError(name, f"{kind.__name__} has no field {shown(name)}; {hint}")


def _field(default: Any, check: Callable[[Any], str | None]) -> Any:
    return field(default=default, metadata={_CHECK: check})


# Values that a file may hold: each check returns the value as a plain one, or raises a FieldError.


def check_text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise FieldError(name, f"{name} must be text of 1 to {longest:,} characters, got {shown(value)}.")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise FieldError(name, f"{name} must be one of {', '.join(choices)}, got {shown(value)}.")
    return value


def check_count(name: str, value: Any, most: int, *, least: int = 1) -> int:
    """An integer in a range."""
    number = _as_number(value)
    if not isinstance(number, int) or not least <= number <= most:
        raise FieldError(name, f"{name} must be an integer from {least} to {most:,}, got {shown(value)}.")
    return number


def check_at_least(name: str, value: float | None, least: float) -> None:
    """An argument; None is one that was left out."""
    if value is not None and value < least:
        raise FieldError(name, f"{name} must be at least {least:g}, got {value:g}.")


def check_number(name: str, value: Any, least: float, most: float) -> float:
    """A finite number."""
    number = _as_number(value)
    if number is None or not least <= number <= most:
        raise FieldError(name, f"{name} must be a number from {least:g} to {most:g}, got {shown(value)}.")
    return float(number)


def check_probability(name: str, value: Any) -> float:
    number = _as_number(value)
    if number is None or not 0 < number <= 1:
        raise FieldError(name, f"{name} must be a probability above 0 and at most 1, got {shown(value)}.")
    return float(number)


def _as_number(value: Any) -> int | float | None:
    """Python's number of a Python or NumPy one; None of anything else, booleans too."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else None


def check_size(name: str, value: Any, most: int) -> tuple[int, int]:
    """(height, width)."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise FieldError(name, f"{name} must be (height, width), got {shown(value)}.")
    height, width = (check_count(name, side, most) for side in value)
    return height, width


def check_mapping(kind: type, values: Any, required: Iterable[str]) -> None:
    """Raise unless `values` is a mapping of a dataclass's field names, the required ones among them."""
    if not isinstance(values, Mapping):
        raise FieldError(kind.__name__, f"{kind.__name__} must be an object, got {shown(values)}.")
    check_field_names(kind, values)
    for name in required:
        if name not in values:
            raise FieldError(name, f"{kind.__name__} lacks the field {name!r}.")


def plain_json(name: str, value: Any, most_items: int = 10_000, deepest: int = 16) -> Any:
    """A copy in dicts, lists, text, finite numbers, booleans and None, as JSON would give it back."""
    left = most_items

    def copy(value: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > deepest:
            raise FieldError(name, f"{name} may hold {most_items:,} values at most, {deepest} levels deep.")
        if isinstance(value, Mapping):
            return {check_text(f"a key of {name}", key, 1000): copy(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [copy(item, depth + 1) for item in value]
        if value is None or isinstance(value, bool) or (isinstance(value, str) and len(value) <= 10_000):
            return value
        number = _as_number(value)
        if number is None or not abs(number) < 1 << 63:
            raise FieldError(name, f"{name} must be plain JSON of moderate size, got {shown(value)}.")
        return number

    return copy(value, 0)
