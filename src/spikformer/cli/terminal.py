"""What reaches the terminal: lines and tables, with the text of files made printable."""

from __future__ import annotations

import unicodedata
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDEST = 10_000  # of a table, in letters
_LONGEST = 1000  # of an error message, in letters
_JOINERS = "\u200c\u200d"  # part of words in some scripts, and of emoji


def printable(text: str) -> str:
    """Text with its control characters as escapes, so that no file can move the cursor or forge a line."""
    return "".join(_escaped(letter) if _is_control(letter) else letter for letter in text)


def _is_control(letter: str) -> bool:
    """Control and formatting characters, halves of surrogates, separators of lines; but a newline is ours."""
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") and letter not in f"\n{_JOINERS}"


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode()


def shortened(message: str) -> str:
    """A message that quotes hundreds of things keeps its beginning, and its end, which says what to do."""
    half = _LONGEST // 2
    return message if len(message) <= _LONGEST else f"{message[:half]} … {message[-half:]}"


class Terminal(Console):
    """rich's console, through which every text is made printable."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def say(line: str, *, stderr: bool = False) -> None:
    """A line as it is: not wrapped, not coloured, and no part of it taken for markup."""
    Terminal(stderr=stderr).print(line, highlight=False, soft_wrap=True, markup=False)


def print_table(table: Table) -> None:
    """As wide as it is: a narrow terminal may break its lines, but nothing is cut off."""
    terminal = Terminal()
    needed = terminal.measure(table, options=terminal.options.update(max_width=_WIDEST)).maximum
    Terminal(width=max(terminal.width, needed)).print(table, highlight=False)
