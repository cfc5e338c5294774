"""Checks of values that a file may hold: each returns the value as a plain one, or raises a short ValueError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

from spikformer.vocabulary import did_you_mean, shown


def check_text(name: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= longest:
        raise ValueError(f"{name} must be text of 1 to {longest:,} characters, got {shown(value)}.")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {shown(value)}.")
    return value


def check_count(name: str, value: Any, most: int) -> int:
    """An integer from 1."""
    number = _as_number(value)
    if not isinstance(number, int) or not 1 <= number <= most:
        raise ValueError(f"{name} must be an integer from 1 to {most:,}, got {shown(value)}.")
    return number


def check_number(name: str, value: Any, least: float, most: float) -> float:
    """A finite number."""
    number = _as_number(value)
    if number is None or not least <= number <= most:
        raise ValueError(f"{name} must be a number from {least:g} to {most:g}, got {shown(value)}.")
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
        raise ValueError(f"{name} must be (height, width), got {shown(value)}.")
    height, width = (check_count(name, side, most) for side in value)
    return height, width


def check_fields(kind: type, values: Any, required: Iterable[str]) -> None:
    """Raise unless `values` is a mapping of a dataclass's field names, the required ones among them."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{kind.__name__} must be an object, got {shown(values)}.")
    known = [field.name for field in fields(kind)]
    for name in values:
        if name not in known:
            hint = did_you_mean(name, known, f"known fields are {', '.join(known)}.")
            raise ValueError(f"{kind.__name__} has no field {shown(name)}; {hint}")
    for name in required:
        if name not in values:
            raise ValueError(f"{kind.__name__} lacks the field {name!r}.")


def plain_json(name: str, value: Any, most_items: int = 10_000, deepest: int = 16) -> Any:
    """A copy in dicts, lists, text, finite numbers, booleans and None, as JSON would give it back."""
    left = most_items

    def copy(value: Any, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0 or depth > deepest:
            raise ValueError(f"{name} may hold {most_items:,} values at most, {deepest} levels deep.")
        if isinstance(value, Mapping):
            return {check_text(f"a key of {name}", key, 1000): copy(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [copy(item, depth + 1) for item in value]
        if value is None or isinstance(value, bool) or (isinstance(value, str) and len(value) <= 10_000):
            return value
        number = _as_number(value)
        if number is None or not abs(number) < 1 << 63:
            raise ValueError(f"{name} must be plain JSON of moderate size, got {shown(value)}.")
        return number

    return copy(value, 0)
