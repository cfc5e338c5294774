"""The page as text: complete, self-contained, escaped, written whole or not at all."""

import os
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.faults import BROKEN, FULL, fail_each
from tests.mistakes import mistake

from spikformer.errors import SILENT
from spikformer.io import check_html_path
from spikformer.visualise.report import render_report, write_report
from spikformer.visualise.report.wording import three_digits

EVIL = "<script>window.hacked = 1</script>\"'><img src=x onerror=hacked()>&amp;"
_VOID = {"meta", "link", "br", "img", "hr", "input"}


class Page(HTMLParser):
    """What a browser would find: elements, attributes, text; and that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attributes]
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attributes]

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1:] == [tag], f"</{tag}> in {self._open}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def values(self, *names: str) -> list[str]:
        return [value for name, value in self.attributes if name in names]

    @property
    def words(self) -> str:
        """The text with a space between any two elements."""
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def one(make_run, report_of) -> Page:
    return Page(render_report(report_of(make_run())))


@pytest.fixture(scope="module")
def evil(make_run, report_of) -> Page:
    """Names that are out for trouble, in two runs."""
    first = make_run(
        name=EVIL,
        recipe=EVIL,
        data=EVIL,
        class_names=(EVIL, "dog", "owl"),
        confusion=[[1, 2, 0], [0, 3, 0], [1, 0, 2]],
        environment={EVIL: EVIL, "command": [EVIL]},
        settings={EVIL: EVIL, "model": {EVIL: EVIL}},
    )
    samples = [replace(each, label=EVIL, answer=EVIL, source=EVIL) for each in first.samples]
    first = replace(first, samples=samples)
    return Page(render_report(report_of(first, make_run(name="second"))))


def test_the_page_has_everything(one: Page) -> None:
    words = one.words
    for text in (
        "87.50%",
        "81.25%",
        "15.8 µJ",
        "158,314",
        "1 min 0 s",
        "last.safetensors",
        64 * "b",
        "1.2.3",
        "2026-02-03",
    ):
        assert text in words, text
    for heading in ("Accuracy", "Curves", "Firing", "Energy", "What it looks at", "Configuration", "Layer by layer"):
        assert f"{heading} #" in words, heading
    assert "cat, classified correctly (75%)" in words
    assert "cat, classified as dog (75%)" in words
    assert "spikformer train 'two words'" in words
    assert "seed 7" in words
    assert one.tags.count("svg") == 9
    assert "still training" not in words
    assert "silent" not in words


def test_a_silent_network_is_reported_and_given_no_answer(make_run, report_of) -> None:
    run = make_run()
    samples = [replace(sample, answer=None, confidence=0.0) for sample in run.samples]
    run = replace(run, evaluation=replace(run.evaluation, silent=True), samples=samples)
    words = Page(render_report(report_of(run))).words
    assert SILENT in words
    assert "cat, no answer" in words
    assert "classified" not in words


def test_the_energy_table_holds_every_convention(make_run, one: Page) -> None:
    energy = make_run().energy
    for convention in ("paper", "strict", "entrywise"):
        for first_conv in ("every_step", "once"):
            assert f"{three_digits(1e3 * energy.energy_mj(convention, first_conv))} µJ" in one.words


def test_links_lead_somewhere_and_ids_are_unique(one: Page, evil: Page) -> None:
    for page in (one, evil):
        ids = page.values("id")
        assert len(ids) == len(set(ids))
        links = [link for link in page.values("href") if link != "data:,"]
        assert len(links) > 10
        assert {link.removeprefix("#") for link in links} <= set(ids)


def test_the_page_needs_nothing_but_itself(one: Page) -> None:
    assert not {"script", "iframe", "object", "embed"} & set(one.tags)
    assert all(link.startswith(("#", "data:")) for link in one.values("href", "src", "xlink:href", "srcset"))
    assert not any("url(" in value.replace("url(#", "") for value in one.values("style"))
    assert "default-src 'none'" in " ".join(one.values("content"))


def test_names_are_text_and_never_markup(evil: Page) -> None:
    assert not {"script", "img"} & set(evil.tags)
    assert not [name for name, _ in evil.attributes if name.startswith("on")]
    assert sum(EVIL in text for text in evil.texts) > 10
    assert any(EVIL in value for value in evil.values("aria-label"))


def test_several_runs_are_compared_first_and_then_shown_in_turn(evil: Page) -> None:
    words = evil.words
    assert words.index("Comparison #") < words.index("Settings that differ #") < words.index("second #")
    assert {"comparison", "run-1", "run-2", "run-2-energy"} <= set(evil.values("id"))
    assert evil.tags.count("svg") == 9 + 9 + 1


def test_a_run_in_training_says_so(make_run, report_of) -> None:
    page = Page(render_report(report_of(make_run(planned_epochs=9, best=None))))
    assert "has finished 2 of 9 epochs" in page.words
    assert "The weights of the best epoch are not in the run's folder." in page.words


def test_a_network_that_neither_spikes_nor_attends(make_run, report_of) -> None:
    run = make_run(model={"neuron": "relu", "time_steps": 1, "attention": "none"})
    samples = [replace(each, attention=[]) for each in run.samples]
    last = replace(run.last, validation_accuracy=None)
    page = Page(render_report(report_of(replace(run, samples=samples, last=last, best=None, environment={}))))
    assert "This network has no spiking neurons." in page.words
    assert "This network has no attention" in page.words
    assert "Nothing was held out for validation" in page.words
    assert "Single neurons" not in page.words


def test_many_classes_are_folded(make_run, report_of) -> None:
    names = tuple(f"class {number}" for number in range(25))
    confusion = [[10 - label // 3 if label == answer else 0 for answer in range(25)] for label in range(25)]
    for label, row in enumerate(confusion):
        row[0] += label // 3
    page = Page(render_report(report_of(make_run(class_names=names, confusion=confusion))))
    assert "The ten worst and the five best of 25:" in page.words
    assert (
        page.words.index("class 24 20.00%") < page.words.index("class 0 100.00%") < page.words.index("All 25 classes")
    )


def test_the_file_is_whole_or_untouched(make_run, report_of, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    broken = replace(make_run(), samples=[replace(make_run().samples[0], picture=None)])
    with pytest.raises(AttributeError):
        write_report(report_of(broken), path)
    assert path.read_text() == "old"
    unnamed = make_run(name="caf\udce9", samples=[], traces=None)  # as a folder's name that is not UTF-8 is read
    write_report(report_of(unnamed), path)
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert os.listdir(tmp_path) == ["report.html"]
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("name", "error"),
    [("", IsADirectoryError), ("missing/report.html", FileNotFoundError), ("metrics.csv", ValueError)],
)
def test_a_place_that_cannot_be_is_an_error(tmp_path: Path, name: str, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        check_html_path(tmp_path / name, "report.html")
    assert str(tmp_path) in str(caught.value)


def test_a_place_that_cannot_be_written_is_an_error() -> None:
    with mistake(OSError, "/proc/report.html"):
        check_html_path(Path("/proc/report.html"), "report.html")


@pytest.mark.slow  # a page takes a second to draw
@pytest.mark.parametrize("code", [FULL, BROKEN], ids=["full", "broken"])
def test_every_fault_leaves_the_old_report_or_the_new_one(tmp_path: Path, make_run, report_of, code: int) -> None:
    path, network = tmp_path / "report.html", {"neuron": "relu", "time_steps": 1, "attention": "none"}
    report = report_of(make_run(model=network, samples=[], traces=None))

    def check(failed: bool) -> None:
        content = path.read_text()
        assert content == "old" or (content.startswith("<!DOCTYPE html>") and content.endswith("</html>"))
        assert failed or content != "old"
        assert os.listdir(tmp_path) == ["report.html"]

    number = fail_each(tmp_path, lambda: path.write_text("old"), lambda: write_report(report, path), check, code)
    assert number == 5, "create, write, sync the file, rename, sync the folder"
