"""Figures: the settings of nobody else, a white card as PNG, and an SVG that any page can take in."""

import errno
import os
import re
import sys
from pathlib import Path
from subprocess import run
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from tests.mistakes import file_error, mistake

from spikformer.visualise.style import (
    COLOURS,
    INK,
    INK_AT_NIGHT,
    check_figure_path,
    drawable,
    house_style,
    new_figure,
    readable_on,
    save_figure,
    shortened,
    svg_text,
)

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"


@house_style()
def figure(title: str = "Title", *, values: tuple[float, ...] = (1, 3, 2), description: str = "A line.") -> Figure:
    made = new_figure(4, 3, description)
    line, picture = made.subplots(1, 2)
    line.plot(values, "o-")
    line.set_title(drawable(title))
    line.grid()
    picture.imshow(np.arange(6).reshape(2, 3))
    return made


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted([luminance(one), luminance(other)])
    return (lighter + 0.05) / (darker + 0.05)


def test_a_png_is_an_opaque_white_card(tmp_path: Path) -> None:
    save_figure(figure(), tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        assert picture.format == "PNG"
        assert picture.size == (600, 450)
        pixels = np.asarray(picture.convert("RGBA"))
    assert (pixels[..., 3] == 255).all()
    assert (pixels[0] == 255).all()
    assert (pixels[..., :3] < 100).all(-1).any(), "dark ink"


@pytest.mark.parametrize(("ending", "kind"), [(".PNG", "PNG"), (".webp", "WEBP"), (".jpg", "JPEG"), (".jpeg", "JPEG")])
def test_the_ending_says_the_format(tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"a{ending}"
    save_figure(figure(), path)
    with Image.open(path) as picture:
        assert (picture.format, picture.size) == (kind, (600, 450))
    assert os.listdir(tmp_path) == [path.name]


def test_a_pdf_is_a_pdf(tmp_path: Path) -> None:
    save_figure(figure(), tmp_path / "a.PDF")
    assert (tmp_path / "a.PDF").read_bytes().startswith(b"%PDF-")


@pytest.mark.parametrize("ending", [".png", ".svg", ".pdf"])
def test_the_same_figure_is_the_same_file_to_the_byte(tmp_path: Path, ending: str) -> None:
    """No date, no random id; and a figure that was saved can be saved again."""
    first, second, again = (tmp_path / f"{name}{ending}" for name in ("first", "second", "again"))
    made = figure()
    save_figure(made, first)
    save_figure(figure(), second)
    save_figure(made, again)
    assert first.read_bytes() == second.read_bytes() == again.read_bytes()


def test_an_svg_alone_is_dark_on_light_and_light_on_dark(tmp_path: Path) -> None:
    save_figure(figure(), tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text.encode())
    assert root.tag == f"{SVG}svg"
    (sheet,) = root.iter(f"{SVG}style")
    day, night = re.fullmatch(
        r":root \{ color: (#\w+) \} @media \(prefers-color-scheme: dark\) \{ :root \{ color: (#\w+) \} \}",
        sheet.text or "",
    ).groups()
    assert (day, night) == (INK, INK_AT_NIGHT)
    assert contrast(day, "#ffffff") > 10
    assert contrast(night, "#0d1117") > 10
    assert text.startswith("<?xml")


@pytest.mark.parametrize("colour", COLOURS[:4])
def test_the_first_colours_are_seen_on_white_and_on_black(colour: str) -> None:
    assert min(contrast(colour, "#ffffff"), contrast(colour, "#0d1117")) >= 3


def test_all_ink_of_an_svg_is_the_pages_and_nothing_covers_its_background() -> None:
    text = svg_text(figure(), "name")
    root = ElementTree.fromstring(text)
    assert INK not in text
    assert "#000000" not in text
    letters = list(root.iter(f"{SVG}text"))
    assert letters
    assert all("fill: currentColor" in letter.get("style", "") for letter in letters)
    assert "stroke: currentColor" in text, "axes and ticks"
    assert COLOURS[0].lower() in text.lower(), "data keep their colours"
    fills = {
        style.split("fill: ")[1].split(";")[0]
        for e in root.iter(f"{SVG}path")
        if "fill: " in (style := e.get("style", ""))
    }
    assert not fills & {"#ffffff", "white"}


def test_an_svg_for_a_page_is_one_element_that_styles_nothing_else() -> None:
    text = svg_text(figure(description='Say "less" & more'), "name")
    assert text.startswith("<svg ")
    assert text.endswith("</svg>")
    assert "<style" not in text
    assert "<metadata" not in text
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'Say "less" & more'
    assert root.get("viewBox") == "0 0 288 216"
    assert "max-width: 100%" in (root.get("style") or "")
    assert ElementTree.fromstring(svg_text(figure(description=""), "name")).get("aria-label") is None


def test_letters_stay_letters_in_the_readers_font() -> None:
    root = ElementTree.fromstring(svg_text(figure("Loss of the run"), "name"))
    texts = {element.text: element.get("style") or "" for element in root.iter(f"{SVG}text")}
    assert "Loss of the run" in texts
    for style in texts.values():
        assert re.search(r"(?:font-family: |px )sans-serif(?:;|$)", style), style


def test_ids_are_unique_on_a_page_even_of_two_figures_alike_and_every_reference_finds_its_own() -> None:
    seen: set[str] = set()
    for name, drawing in {"a": figure("one"), "b": figure("one"), "c": figure(values=(4, 4, 4))}.items():
        elements = list(ElementTree.fromstring(svg_text(drawing, name)).iter())
        ids = [element.get("id") for element in elements if element.get("id")]
        assert len(set(ids)) == len(ids)
        assert not seen & {*ids}
        seen |= {name for name in ids if name}
        links = [link[1:] for element in elements if (link := element.get(HREF, "")).startswith("#")]
        clips = [clip[5:-1] for element in elements if (clip := element.get("clip-path"))]
        assert links
        assert clips
        assert {*links, *clips} <= {*ids}


def test_a_picture_in_an_svg_keeps_its_pixels() -> None:
    (image,) = ElementTree.fromstring(svg_text(figure(), "name")).iter(f"{SVG}image")
    assert (image.get("width"), image.get("height")) == ("3", "2")
    assert re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]+", image.get(HREF) or "")
    assert "pixelated" in (image.get("style") or "")


@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("a$b$ and $\\frac{", "a$b$ and $\\frac{"),
        ("$5 or $6", "$5 or $6"),
        ("<script> & 'so' \"on\"", "<script> & 'so' \"on\""),
        (f'id="x" {INK} url(#y)', f'id="x" {INK} url(#y)'),
        ("猫", "猫"),
        ("a\0b\x1bc\udcff", "a\ufffdb\ufffdc\ufffd"),
    ],
)
def test_any_text_is_drawn_and_kept(tmp_path: Path, title: str, kept: str) -> None:
    made = figure(title, description=title)
    root = ElementTree.fromstring(svg_text(made, "name"))
    assert kept in [element.text for element in root.iter(f"{SVG}text")]
    assert root.get("aria-label") == kept
    for ending in (".svg", ".png"):
        save_figure(made, tmp_path / f"a{ending}")
        assert (tmp_path / f"a{ending}").stat().st_size > 1000


def test_settings_of_the_process_are_not_used_and_not_changed(tmp_path: Path) -> None:
    plain = svg_text(figure(), "name")
    with matplotlib.rc_context(
        {"text.color": "red", "font.size": 30, "axes.facecolor": "pink", "svg.fonttype": "path"}
    ):
        before = dict(matplotlib.rcParams)
        assert svg_text(figure(), "name") == plain
        assert dict(matplotlib.rcParams) == before
        with pytest.raises(RuntimeError), house_style():
            raise RuntimeError
        assert dict(matplotlib.rcParams) == before


def test_no_window_is_opened_and_nothing_heavy_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, spikformer.visualise.style as f\n"
        "assert 'matplotlib' not in sys.modules\n"
        "f.svg_text(f.new_figure(1, 1), 'name')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    result = run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_other_formats_and_places_are_errors_and_leave_nothing(tmp_path: Path) -> None:
    for name in ("a.gif", "a", "a.svgz"):
        for call in (check_figure_path, lambda path: save_figure(figure(), path)):
            with file_error(tmp_path / name, "unsupported", ".png", ".svg", ".pdf", ".jpg", ".jpeg", ".webp"):
                call(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        check_figure_path(tmp_path / "none" / "a.svg")
    check_figure_path(tmp_path / "a.SVG")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(IsADirectoryError):
        save_figure(figure(), tmp_path / "folder.png")
    with mistake(OSError, os.strerror(errno.ENAMETOOLONG)):
        save_figure(figure(), tmp_path / ("n" * 300 + ".png"))
    with file_error(tmp_path / "long.webp", "too_large", ".png"):
        save_figure(new_figure(120, 0.1), tmp_path / "long.webp")  # 18,000 pixels wide
    assert os.listdir(tmp_path) == ["folder.png"]


def test_a_name_as_long_as_is_allowed_is_fine_and_an_older_figure_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 251 + ".png")
    for width in (1, 2):
        save_figure(new_figure(width, 1), path)
    with Image.open(path) as image:
        assert image.size == (300, 150)


def test_letters_on_a_colour_can_be_read() -> None:
    for colour in (*COLOURS, "#ffffff", "#000000", "#777777"):
        assert contrast(readable_on(colour), colour) > 4.2
    assert INK not in {readable_on("#ffffff"), readable_on("#000000")}, "no page's theme may change it"
    assert readable_on((1.0, 1.0, 1.0, 1.0)) == readable_on("white")


def test_names_are_shortened_in_their_middle() -> None:
    assert shortened("blocks.0.attention.query.neuron") == "blocks.0.attention.query.neuron"
    assert shortened("a" * 30 + "b" * 30) == "a" * 19 + "…" + "b" * 19
    assert shortened("_hidden") == " _hidden"
