"""How messages to users show words and values, and the one about silent networks that every verb gives."""

from collections.abc import Iterable
from difflib import get_close_matches

SILENT = (
    "The network is silent: no spike reaches its head, so every input gets the same answer. Train it longer or with "
    "larger batches, or recompute its norm statistics (torch.optim.swa_utils.update_bn)."
)


def did_you_mean(word: object, known: Iterable[str], otherwise: str) -> str:
    """The end of an error message about an unknown word: the nearest known one, or something else to do."""
    near = get_close_matches(str(word).lower(), list(known), n=1, cutoff=0.7)
    return f"did you mean {near[0]!r}?" if near else otherwise


def shown(value: object, longest: int = 80) -> str:
    """A value as an error message shows it: its repr, which escapes control characters, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python prints no int of more than 4,300 digits
        text = f"a number of {value.bit_length():,} bits" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def printable(text: object, length: int = 100) -> str:
    """What a file or a library says, fit for an error message: one line without control characters, cut to `length`."""
    visible = "".join(letter if letter.isprintable() else " " for letter in str(text)[: 2 * length])
    line = " ".join(visible.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
