"""Lettering: any text in a box of given width and lines, wrapped, and shortened in the middle where it is too long.

Pillow's own font has little more than ASCII. A letter it lacks is replaced by the nearest one, or drawn as a box.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_right
from functools import cache

from PIL import Image, ImageDraw, ImageFont

from spikformer.visualise.tiles import BACKGROUND, Colour

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_LONGEST = 400  # letters that are measured at all; no box holds more
_BREAK_AFTER = " _-/\\"
_NO_LETTER = "\uffff"  # Unicode promises that it never will be one: every font draws its box
_STAND_INS = dict(zip("‐‑–—−×•µμ", "-----x·uu", strict=True))
_STAND_INS |= {"→": "->", "←": "<-", "≤": "<=", "≥": ">=", "ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE"}
_STAND_INS |= dict(zip("øØłŁđĐðÐıħ", "oOlLdDdDih", strict=True))


def lettering(text: str, size: int, ink: Colour, width: int, max_lines: int = 1) -> Image.Image:
    """The text on the sheet's background, as small as it can be cut; nothing of it is wider than `width`."""
    font = ImageFont.load_default(size=size)
    lines = _fitted(_printable(text), font, width, max_lines)
    longest = max((math.ceil(font.getlength(line)) for line in lines), default=0)
    height = line_height(size)
    # On paper of its own: accents piled up or a font that measures wrong are cut off, never drawn over a neighbour.
    paper = Image.new("RGB", (min(longest, width), height * len(lines)), BACKGROUND)
    pen = ImageDraw.Draw(paper)
    for number, line in enumerate(lines):
        pen.text((0, number * height), line, ink, font)
    return paper


def line_height(size: int) -> int:
    return round(size * 1.25)


def _printable(text: str) -> str:
    """Only what the font can draw, or a box; line breaks are kept."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"
    return "".join(map(_drawable, unicodedata.normalize("NFC", text)))


@cache
def _drawable(letter: str) -> str:
    """The letter itself, else the nearest the font has: é → e, – → -; a box for one of another script."""
    category = unicodedata.category(letter)
    if category in ("Cc", "Zl", "Zp", "Zs"):
        return letter if letter == "\n" else " "
    if category in ("Cf", "Mn"):  # invisible by definition, or an accent that no letter took in
        return ""
    if category == "Cs":  # a byte of a file name that is no UTF-8
        return "\ufffd"
    if _has_glyph(letter):
        return letter
    parts = [part for part in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(part)]
    plain = "".join(_STAND_INS.get(part, part) for part in parts)
    return plain if all(map(_has_glyph, plain)) else letter


def _has_glyph(letter: str) -> bool:
    font = ImageFont.load_default(size=24)
    return bytes(font.getmask(letter)) != bytes(font.getmask(_NO_LETTER))


def _fitted(text: str, font: Font, width: int, max_lines: int) -> list[str]:
    def lines(kept: int) -> list[str]:
        return _wrapped(f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}", font, width)

    whole = _wrapped(text, font, width)
    if len(whole) <= max_lines:
        return whole
    kept = bisect_right(range(1, len(text)), max_lines, key=lambda kept: len(lines(kept)))
    return lines(kept)[:max_lines]


def _wrapped(text: str, font: Font, width: int) -> list[str]:
    lines = []
    for paragraph in text.split("\n"):
        rest = paragraph.strip()
        while rest:
            end = _line_end(rest, font, width)
            lines.append(rest[:end].rstrip())
            rest = rest[end:].lstrip()
    return lines


def _line_end(text: str, font: Font, width: int) -> int:
    """How many letters go on a line: up to the last word that fits, unless that would leave half of it empty."""
    lengths = range(1, len(text) + 1)
    fitting = max(1, bisect_right(lengths, width, key=lambda length: math.ceil(font.getlength(text[:length]))))
    if fitting == len(text):
        return fitting
    words = [end for end in range(fitting // 2 + 1, fitting + 1) if text[end - 1] in _BREAK_AFTER or text[end] == " "]
    return max(words, default=fitting)
