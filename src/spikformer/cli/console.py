"""A verb's command line in, by tyro; lines, tables and progress bars out, with text of files escaped."""

from __future__ import annotations

import io
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import tyro
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from spikformer.errors import FieldError
from spikformer.validation import Accelerator, Split

if TYPE_CHECKING:
    from torch import Tensor

    from spikformer.data import DataSet
    from spikformer.models import SpikingNetwork

_WIDEST = 10_000  # of a table, in letters
_LONGEST = 1000  # of an error message, in letters
_JOINERS = "\u200c\u200d"  # part of words in some scripts, and of emoji


def escaped(text: str) -> str:
    """Text with its control characters as escapes, so that no file can move the cursor; newlines stay."""
    return "".join(_escape(letter) if _is_control(letter) else letter for letter in text)


def one_line(text: str) -> str:
    """The same with newlines as escapes: what quotes a file or its name stays one line, and cannot forge another."""
    return escaped(text).replace("\n", "\\n")


def cell(text: str) -> str:
    """Text of a file in a cell of a table: one line, and no part of it taken for markup."""
    return escape(one_line(text))


def _is_control(letter: str) -> bool:
    """Control and formatting characters, halves of surrogates, separators of lines; but not a newline."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") and letter not in f"\n{_JOINERS}"


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode()


def cut_middle(message: str) -> str:
    """A message that quotes hundreds of things keeps its beginning, and its end, which says what to do."""
    half = _LONGEST // 2
    return message if len(message) <= _LONGEST else f"{message[:half]} … {message[-half:]}"


class Terminal(Console):
    """rich's console, which escapes control characters in every text."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(escaped(text), **options)


def say(line: str, *, stderr: bool = False) -> None:
    """A line as it is: not wrapped, not coloured, and no part of it taken for markup."""
    Terminal(stderr=stderr).print(one_line(line), highlight=False, soft_wrap=True, markup=False)


def plain_table(*, show_footer: bool = False) -> Table:
    """A table without lines, as all verbs print theirs."""
    return Table(box=None, header_style="bold", padding=(0, 2, 0, 0), show_footer=show_footer)


def print_table(table: Table) -> None:
    """As wide as it is: a narrow terminal may break its lines, but nothing is cut off."""
    terminal = Terminal()
    needed = terminal.measure(table, options=terminal.options.update(max_width=_WIDEST)).maximum
    Terminal(width=max(terminal.width, needed)).print(table, highlight=False)


@contextmanager
def bar(what: str, total: int, *, enabled: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal; call what it yields with the number of samples done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Terminal(stderr=True)
    live = console.is_terminal and enabled
    with Progress(*columns, console=console, transient=True, disable=not live) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)


def parse_options(options: Any, verb: str, description: str | None, arguments: list[str], **more: Any) -> Any:
    """The options of a verb. A mistake, or --help, ends in SystemExit once tyro has printed what it has to say.

    A wrong value of a field of model or augmentation raises the FieldError itself, as fields of the recipe do: tyro's
    own words for it name the Python attribute that holds the settings.
    """
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(
                options,
                prog=f"spikformer {verb}",
                description=_with_lines(description or ""),
                args=arguments,
                use_underscores=False,
                registry=_REGISTRY,
                **more,
            )
    except SystemExit as stop:
        if (mistake := _field_error(stop)) is not None:
            raise mistake from None
        sys.stderr.write(said.getvalue())
        raise


def _field_error(stop: SystemExit) -> FieldError | None:
    """The error that tyro was handling when it ended the program."""
    error: BaseException | None = stop
    while error is not None and not isinstance(error, FieldError):
        error = error.__context__
    return error


def _with_lines(description: str) -> str:
    """Each example on a line of its own: tyro joins lines that begin with a letter."""
    return description.replace("\nExample:", "\n\nExample:").replace("\n\n\n", "\n\n")


def _integer(words: list[str]) -> int:
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
    sides = [_integer([word]) for word in words]
    if len(sides) > 2:
        raise ValueError(f"expected one or two integers, got {' '.join(words)}")
    return sides[0], sides[-1]


def _numbers(words: list[str]) -> tuple[float, ...] | None:
    return None if words == ["None"] else tuple(_number([word]) for word in words)


def _two_numbers(words: list[str]) -> tuple[float, ...] | None:
    numbers = _numbers(words)
    if numbers is not None and len(numbers) != 2:
        raise ValueError(f"expected two numbers or None, got {' '.join(words)}")
    return numbers


def _path(words: list[str]) -> Path:
    return Path(words[0])


def _word(words: list[str]) -> str:
    return words[0]


_READERS: dict[Any, tuple[str, Callable[[list[str]], Any], Callable[[Any], bool]]] = {
    int: ("INT", _integer, lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: ("FLOAT", _number, lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    Path: ("PATH", _path, lambda value: isinstance(value, Path)),
    str: ("NAME", _word, lambda value: isinstance(value, str)),
}
"""What the usage calls a value, how to read it, and whether a default is one."""
_REGISTRY = ConstructorRegistry()


@_REGISTRY.primitive_rule
def _rule(kind: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Usage lines name what is meant, and None where it is an option is a word like others."""
    parts = set(get_args(kind.type)) if get_origin(kind.type) in (Union, UnionType) else set()
    if parts == {tuple[int, int], type(None)}:
        return PrimitiveConstructorSpec((1, 2), "SIZE|{HEIGHT WIDTH}", _size, lambda _: True, _words)
    if parts == {tuple[float, float], type(None)}:
        return PrimitiveConstructorSpec((1, 2), "FLOAT FLOAT", _two_numbers, lambda _: True, _words)
    if parts == {tuple[float, ...], type(None)}:
        return PrimitiveConstructorSpec("*", "FLOAT…", _numbers, lambda _: True, _words)
    optional = len(parts) == 2 and type(None) in parts
    wanted = next(iter(parts - {type(None)})) if optional else kind.type
    if wanted not in _READERS:
        return None
    name, read, fits = _READERS[wanted]
    return PrimitiveConstructorSpec(
        1,
        name,
        lambda words: None if optional and words == ["None"] else read(words),
        lambda value: (optional and value is None) or fits(value),
        lambda value: [str(value)],
    )


def _words(numbers: tuple[float, ...] | None) -> list[str]:
    return ["None"] if numbers is None else [str(number) for number in numbers]


def check_least(options: object, most: int | None = None, **least: int) -> None:
    """Numbers among the options, before anything is read: ValueError that names the flag of one below its least."""
    for name, bound in least.items():
        value = getattr(options, name)
        if value is not None and not bound <= value <= (value if most is None else most):
            expected = f"at least {bound}" if most is None else f"{bound} to {most}"
            raise ValueError(f"--{name.replace('_', '-')} must be {expected}, got {value}.")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Options that verbs share which run trained weights over their data."""

    data: Path | None = None
    """Folder or archive with the data set's files; by default where the run found them."""
    split: Split = "test"
    """Which split of the data."""
    max_samples: int = 512
    """How many samples at most, taken from all over the split."""
    batch_size: int = 32
    """Samples at a time."""
    accelerator: Accelerator = "auto"
    """Where to compute; auto uses a GPU if there is one."""

    def open(self, weights: str) -> tuple[SpikingNetwork, DataSet]:
        """The model, on its device, and its data."""
        from spikformer.runs.measure import open_measured

        check_least(self, max_samples=1, batch_size=1)
        model, data = open_measured(weights, self.data, self.accelerator)
        data.split(self.split)
        return model, data

    def batches(self, model: SpikingNetwork, data: DataSet) -> Iterator[Tensor]:
        from spikformer.runs.measure import batches

        return batches(model, data, self.split, self.max_samples, self.batch_size)
