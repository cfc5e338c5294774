"""The house style, and figures as files: the one place that knows matplotlib's set-up.

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

from spikformer.errors import FileError
from spikformer.io import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito: distinct for colour-blind readers, and visible on white and on black.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SEQUENTIAL = "Blues"  # one hue, lighter to darker: read by brightness alone
INK = "#1c2024"  # of letters and axes; nothing else may have it, for it becomes the page's in an SVG
INK_AT_NIGHT = "#e8eaed"
PIXELS_PER_INCH = 150
_FAINT = 0.15
_LONGEST_NAME = 40

_STYLE: dict[str, Any] = {
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
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAMESPACE = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
# Thin letters and single pixels do not survive coarse colours: no subsampling in a JPEG, no loss in a WebP.
_FORMATS: dict[str, dict[str, Any]] = {
    ".png": {},
    ".svg": {},
    ".pdf": {"metadata": {"CreationDate": None}},
    ".jpg": {"pil_kwargs": {"quality": 92, "subsampling": 0}},
    ".jpeg": {"pil_kwargs": {"quality": 92, "subsampling": 0}},
    ".webp": {"pil_kwargs": {"lossless": True}},
}


@contextmanager
def house_style() -> Iterator[None]:
    """Matplotlib as we want it, whatever it was set to before, and as it was afterwards. Also a decorator."""
    from matplotlib import style

    with style.context(_STYLE, after_reset=True):
        yield


def new_figure(
    width_inches: float, height_inches: float, description: str = "", *, pixels_per_inch: int = PIXELS_PER_INCH
) -> Figure:
    """An empty figure that opens no window; `description` is what a screen reader says of its SVG."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_inches, height_inches), dpi=pixels_per_inch, layout="constrained")
    FigureCanvasAgg(figure)
    figure.set_label(drawable(description))
    return figure


def check_figure_path(path: Path) -> None:
    """Raise now what `save_figure` would raise after the figure is made: for an unknown ending or a missing folder."""
    if path.suffix.lower() not in _FORMATS:
        raise FileError(path, f"should end in one of {', '.join(_FORMATS)}, which names its format.", "unsupported")
    if not os.path.isdir(path.parent):
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into; create it first.")


def save_figure(figure: Figure, path: Path) -> None:
    """Write the figure atomically, in the format that the ending of its name says."""
    check_figure_path(path)
    ending = path.suffix.lower()
    if ending == ".svg":
        write_atomically(path, _svg(figure, night=True).encode())
        return
    content = io.BytesIO()
    try:
        _render(figure, content, ending[1:], facecolor="white", **_FORMATS[ending])
    except (OSError, ValueError) as error:  # a WebP has at most 16,383 pixels a side, a JPEG 65,535
        raise FileError(path, f"cannot hold this figure ({error}); try .png or .svg.", "too_large") from None
    write_atomically(path, content.getvalue())


def svg_text(figure: Figure, name: str) -> str:
    """The figure as an <svg> element for an HTML page, whose text colour it takes.

    Its ids begin with `name`: give every figure of a page another one, also where two of them look the same.
    """
    return _svg(figure, name)


def readable_on(colour: Any) -> str:
    """Near black or white, for letters on this colour, which no page's theme changes."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part**2.2 for part in to_rgb(colour))
    return "#101010" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else "#ffffff"


def drawable(text: str) -> str:
    """The text with a replacement character for what neither a font nor XML knows, such as a lone surrogate."""
    return _NOT_IN_XML.sub("\ufffd", text)


def shortened(name: str) -> str:
    """A name as a legend or an axis can hold it; matplotlib leaves those out that begin with an underscore."""
    name = drawable(name)
    half = (_LONGEST_NAME - 1) // 2
    short = name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"
    return f" {short}" if short.startswith("_") else short


def _render(figure: Figure, content: io.BytesIO | io.StringIO, kind: str, **options: Any) -> None:
    with house_style(), warnings.catch_warnings():
        # A letter of another script is drawn as a box; an SVG keeps it, and the reader's fonts may have it.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure.savefig(content, format=kind, **options)


def _svg(figure: Figure, name: str | None = None, *, night: bool = False) -> str:
    """Matplotlib's SVG, made fit for pages: ink, letters and ids as `svg_text` says, nothing that styles others.

    With `night`, a file of its own, which turns its ink light where the reader prefers dark.
    """
    drawn = io.StringIO()
    _render(figure, drawn, "svg", metadata={"Date": None}, facecolor="none")
    root = ElementTree.fromstring(drawn.getvalue())
    for child in root[:2]:  # metadata, and a style sheet that would reach the whole page
        root.remove(child)
    prefix = f"{name or 's' + sha256(drawn.getvalue().encode()).hexdigest()[:10]}-"
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
