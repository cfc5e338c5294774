"""The page in a real browser: quiet, self-contained, readable on a desk, on a phone and on paper."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser import Browser, open_browser

from spikformer.visualise.report import write_report

EVIL = "<script>window.hacked = 1</script>"
CONTRAST = """
const light = colour => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const paper = light(getComputedStyle(document.documentElement).backgroundColor);
return arguments[0].map(selector => {
  const ink = light(getComputedStyle(document.querySelector(selector)).color);
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
});
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def page(make_run, report_of, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one on events, with long and wicked names."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    long = "a_name_without_a_space_" * 6
    first = make_run(name=EVIL, class_names=(EVIL, long, "owl"), confusion=[[1, 2, 0], [0, 3, 0], [1, 0, 2]])
    write_report(report_of(first, make_run(name=long, events=True, planned_epochs=5)), path)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1200])
def test_the_page_is_quiet_asks_for_nothing_and_fits(browser: Browser, page: Path, width: int, scheme) -> None:
    browser.open(page, width=width, scheme=scheme)
    assert browser.complaints == []
    assert browser.requests == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelector('h2#run-1').textContent").startswith(EVIL)
    assert browser.run("return document.scripts.length") == 0


def test_everything_drawn_can_be_seen_at_phone_width(browser: Browser, page: Path) -> None:
    browser.open(page, width=380)
    widths = browser.run("return [...document.querySelectorAll('svg')].map(svg => svg.getBoundingClientRect().width)")
    assert len(widths) == 9 + 10 + 1
    assert min(widths) > 200
    cut = "return [...document.querySelectorAll('svg, table')].filter(e => e.getBoundingClientRect().right > innerWidth"
    assert browser.run(cut + " && !e.closest('.scroll')).length") == 0
    # Boxes that scroll can be reached and named without a mouse.
    boxes = "return [...document.querySelectorAll('.scroll')].every(e => e.tabIndex === 0 && e.ariaLabel)"
    assert browser.run(boxes)


def test_drawings_take_the_colour_of_the_page(browser: Browser, page: Path) -> None:
    inks = []
    for scheme in ("light", "dark"):
        browser.open(page, scheme=scheme)
        ink = browser.run("return getComputedStyle(document.querySelector('svg text')).fill")
        assert ink == browser.run("return getComputedStyle(document.body).color")
        inks.append(ink)
    assert inks[0] != inks[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(browser: Browser, page: Path, scheme) -> None:
    browser.open(page, scheme=scheme)
    ratios = browser.run(CONTRAST, ["p", "figcaption", "nav a", "thead th", ".remark", "h2"])
    assert min(ratios) >= 4.5, ratios


def test_paper_is_light_and_shows_what_is_folded(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page, scheme="dark")
    visible = "return document.querySelector('details table').checkVisibility()"
    assert not browser.run(visible)
    on_screen = browser.run("return getComputedStyle(document.body).color")
    browser.send_command(
        "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
    )
    assert browser.run(visible)
    assert browser.run("return getComputedStyle(document.body).color") != on_screen
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.print(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
