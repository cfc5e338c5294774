"""A command line into a verb's options, by tyro, with examples and error messages that can be read."""

from __future__ import annotations

from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo


def parse_options(options: Any, verb: str, description: str | None, arguments: list[str], **more: Any) -> Any:
    """The options of a verb; a mistake, or --help, ends in SystemExit once tyro has printed what it has to say."""
    return tyro.cli(
        options,
        prog=f"spikformer {verb}",
        description=_with_lines(description or ""),
        args=arguments,
        use_underscores=False,
        registry=_REGISTRY,
        **more,
    )


def _with_lines(description: str) -> str:
    """Each example on a line of its own: tyro joins lines that begin with a letter."""
    return description.replace("\nExample:", "\n\nExample:").replace("\n\n\n", "\n\n")


def _whole(words: list[str]) -> int:
    try:
        return int(words[0])
    except ValueError:
        raise ValueError(f"expected an integer, got {words[0]!r}") from None


def _number(words: list[str]) -> float:
    try:
        return float(words[0])
    except ValueError:
        raise ValueError(f"expected a number, got {words[0]!r}") from None


def _size(words: list[str]) -> tuple[int, int] | None:
    """One number means height and width."""
    if words == ["None"]:
        return None
    sides = [_whole([word]) for word in words]
    if len(sides) > 2:
        raise ValueError(f"expected one or two integers, got {' '.join(words)}")
    return sides[0], sides[-1]


def _path(words: list[str]) -> Path | None:
    return None if words == ["None"] else Path(words[0])


_REGISTRY = ConstructorRegistry()


@_REGISTRY.primitive_rule
def _rule(kind: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    if kind.type is int:
        return PrimitiveConstructorSpec(1, "INT", _whole, _is_whole, lambda value: [str(value)])
    if kind.type is float:
        return PrimitiveConstructorSpec(1, "FLOAT", _number, _is_number, lambda value: [str(value)])
    if get_origin(kind.type) in (Union, UnionType) and set(get_args(kind.type)) == {Path, type(None)}:
        return PrimitiveConstructorSpec(1, "PATH", _path, lambda _: True, lambda value: [str(value)])
    if get_origin(kind.type) in (Union, UnionType) and set(get_args(kind.type)) == {tuple[int, int], type(None)}:
        return PrimitiveConstructorSpec((1, 2), "SIZE|{HEIGHT WIDTH}", _size, lambda _: True, _size_words)
    return None


def _size_words(size: tuple[int, int] | None) -> list[str]:
    return ["None"] if size is None else [str(side) for side in size]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
