"""Figures and their files: the one place that knows matplotlib's set-up.

    @house_style()
    def some_figure(values: …) -> Figure:
        figure = new_figure(6, 4, "what it shows, for those who cannot see it")
        …

    save_figure(some_figure(values), Path("some.svg"))

A PNG is a white card. An SVG has no background, and its ink is `currentColor`: alone it is dark on light and light on
dark, inside a page it is the page's own. Nothing of the process's settings is used or changed.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from spikformer.disk import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by colour-blind eyes, and seen on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SEQUENTIAL = "Blues"  # one hue, lighter to darker: read by brightness alone
INK = "#1c2024"  # of letters and axes; nothing else may have it, for it becomes the page's in an SVG
INK_AT_NIGHT = "#e8eaed"
_FAINT = 0.15
_LONGEST_NAME = 40

_STYLE: dict[str, Any] = {
    "figure.dpi": 150,
    "figure.facecolor": "white",
    "axes.facecolor": "none",
    "axes.prop_cycle": f"cycler('color', {list(COLOURS)})",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "grid.alpha": _FAINT,
    "image.cmap": SEQUENTIAL,
    "image.interpolation": "none",  # a pixel stays a pixel, in an SVG, too
    "legend.frameon": False,
    "svg.fonttype": "none",  # letters that can be read, searched and copied
    "svg.hashsalt": "spikformer",
    "text.parse_math": False,  # a dollar in a name is a dollar
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color"), INK
    ),
}
_UNSPEAKABLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML cannot hold
_NAMESPACE = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_ENDINGS = (".png", ".svg", ".pdf")


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib as we want it, whatever it was set to before, and as it was afterwards. Also a decorator."""
    from matplotlib import style

    with style.context(_STYLE, after_reset=True):
        yield


def new_figure(width_inches: float, height_inches: float, description: str = "") -> Figure:
    """An empty figure that opens no window; `description` is what a screen reader says of its SVG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inches, height_inches), layout="constrained")
    FigureCanvasAgg(figure)
    figure.set_label(printable(description))
    return figure


def check_figure_path(path: Path) -> None:
    """Refuse a name or place that `save_figure` would refuse, before the figure is made."""
    if path.suffix.lower() not in _ENDINGS:
        raise ValueError(f"{path} should end in one of {', '.join(_ENDINGS)}, to say the format of the figure.")
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into; create it first.")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure in the format that its ending says; a file there is replaced only by a whole one."""
    check_figure_path(path)
    match path.suffix.lower():
        case ".svg":
            content = _svg(figure, night=True).encode()
        case ".pdf":
            content = _rendered(figure, "pdf", metadata={"CreationDate": None})
        case _:
            content = _rendered(figure, "png")
    write_atomically(path, content)


def svg_text(figure: Figure) -> str:
    """The figure as an <svg> element for an HTML page, whose text colour it takes.

    Its ids are its own: figures that differ do not get into each other's way on one page.
    """
    return _svg(figure, night=False)


def readable_on(colour: Any) -> str:
    """Near black or white, for letters on this colour, which no page's theme changes."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part**2.2 for part in to_rgb(colour))
    return "#101010" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#ffffff"


def printable(text: str) -> str:
    """The text without what neither a font nor XML knows, such as half a letter of a file's name."""
    return _UNSPEAKABLE.sub("\ufffd", text)


def shortened(name: str) -> str:
    """A name as a legend or an axis can hold it; matplotlib leaves those out that begin with an underscore."""
    name = printable(name)
    half = (_LONGEST_NAME - 1) // 2
    short = name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"
    return f" {short}" if short.startswith("_") else short


def _rendered(figure: Figure, kind: str, **options: Any) -> bytes:
    content = io.BytesIO()
    _render(figure, content, kind, facecolor="white", **options)
    return content.getvalue()


def _render(figure: Figure, content: io.BytesIO | io.StringIO, kind: str, **options: Any) -> None:
    with house_style(), warnings.catch_warnings():
        # A letter of another script is drawn as a box; an SVG keeps it, and the reader's fonts may have it.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(content, format=kind, **options)


def _svg(figure: Figure, *, night: bool) -> str:
    """Matplotlib's SVG, made fit for pages: ink, letters and ids as `svg_text` says, nothing that styles others.

    With `night`, a file of its own, which turns its ink light where the reader prefers dark.
    """
    drawn = io.StringIO()
    _render(figure, drawn, "svg", metadata={"Date": None}, facecolor="none")
    root = ElementTree.fromstring(drawn.getvalue())
    for child in root[:2]:  # metadata, and a style sheet that would reach the whole page
        root.remove(child)
    prefix = f"s{sha256(drawn.getvalue().encode()).hexdigest()[:10]}-"
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_NAMESPACE}}}")
        element.attrib = dict(_own(name, value, prefix) for name, value in element.attrib.items())
    style = "max-width: 100%; height: auto; stroke-linejoin: round; stroke-linecap: butt"
    root.attrib |= {"xmlns": _NAMESPACE, "xmlns:xlink": _XLINK, "role": "img", "style": style}
    if figure.get_label():
        root.set("aria-label", str(figure.get_label()))
    if night:
        sheet = ElementTree.Element("style")
        sheet.text = (
            f":root {{ color: {INK} }} @media (prefers-color-scheme: dark) {{ :root {{ color: {INK_AT_NIGHT} }} }}"
        )
        root.insert(0, sheet)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=night) + "\n" * night


def _own(name: str, value: str, prefix: str) -> tuple[str, str]:
    """An attribute as ours: references by our ids, ink the page's, letters in the reader's font."""
    name = name.replace(f"{{{_XLINK}}}", "xlink:")
    if name == "id":
        return name, prefix + value
    if name == "xlink:href":
        return name, f"#{prefix}{value[1:]}" if value.startswith("#") else "".join(value.split())
    value = value.replace("url(#", f"url(#{prefix}")
    if name == "style":
        value = re.sub(r"'[^;]*sans-serif", "sans-serif", value.replace(INK, "currentColor"))
    return name, value
