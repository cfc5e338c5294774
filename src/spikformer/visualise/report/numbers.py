"""How the page writes numbers and settings."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_ENERGY_UNITS = (("J", 1e3), ("mJ", 1.0), ("µJ", 1e-3), ("nJ", 1e-6), ("pJ", 1e-9))
_COUNT_UNITS = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.2%}"


def count(number: float) -> str:
    """A count with three digits and a unit: 9.32 M."""
    for unit, size in _COUNT_UNITS:
        if number >= 0.9995 * size:
            return f"{three_digits(number / size)} {unit}"
    return f"{number:.0f}"


def energy(millijoules: float) -> str:
    return energy_in(millijoules)(millijoules)


def energy_in(largest_millijoules: float) -> Callable[[float], str]:
    """How to write energies of a table, all in the unit that suits the largest of them."""
    unit, size = energy_unit(largest_millijoules)
    return lambda millijoules: f"{three_digits(millijoules / size)} {unit}"


def energy_unit(millijoules: float) -> tuple[str, float]:
    """The unit that suits an energy, and its millijoules."""
    fitting = (each for each in _ENERGY_UNITS if millijoules >= 0.9995 * each[1])
    return next(fitting, _ENERGY_UNITS[-1])


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    whole = round(seconds)
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


def times(ratio: float) -> str:
    """How many times less, or more."""
    return f"{three_digits(ratio)}× less" if ratio >= 1 else f"{three_digits(1 / ratio)}× more" if ratio > 0 else "–"


def setting(value: Any) -> str:
    """A value of a recipe or an environment, as people write it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case str():
            return value
        case Mapping():
            return ", ".join(f"{name} {setting(inner)}" for name, inner in value.items()) or "none"
        case Sequence():
            return ", ".join(map(setting, value)) or "none"
    return str(value)


def command(words: Any) -> str:
    """What was typed, so that it can be typed again."""
    return shlex.join(map(str, words)) if isinstance(words, Sequence) and not isinstance(words, str) else str(words)


def three_digits(number: float) -> str:
    if number == 0:
        return "0"
    if abs(number) >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 9.995 else f"{number:.2f}"
