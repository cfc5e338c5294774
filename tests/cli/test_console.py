"""Text of files on its way to the terminal, and tables in any width."""

import io
import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from PIL import Image
from rich.table import Table

import spikformer as sf
from spikformer.cli.console import Terminal, cut_middle, escaped, parse_options, print_table
from spikformer.config import ModelConfig
from spikformer.data import open_dataset
from spikformer.errors import FieldError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 3×3 Größe 数字 ᵀ – …", "plain 3×3 Größe 数字 ᵀ – …"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("a\rb\x08c\x7f\x9b", "a\\rb\\x08c\\x7f\\x9b"),
        ("two\nlines", "two\nlines"),
        ("gpj.\u202eexe\u2028", "gpj.\\u202eexe\\u2028"),
        ("می\u200cخواهم 👩\u200d🔬", "می\u200cخواهم 👩\u200d🔬"),
        ("undecodable \udc80", "undecodable \\udc80"),
    ],
)
def test_control_characters_are_escapes_and_letters_stay(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_lines_and_cells_are_escaped() -> None:
    terminal = Terminal(file=io.StringIO(), width=80)
    table = Table("\x1b[2J", "b")
    table.add_row("\x1b]0;x\x07", "c")
    terminal.print("\x1b[1A", table, markup=False)
    assert "\x1b" not in terminal.file.getvalue()
    assert terminal.file.getvalue().count("\\x1b") == 3


def test_long_messages_keep_both_ends() -> None:
    message = f"There is no 'x'; {', '.join(map(str, range(1000)))}; choose one."
    assert cut_middle("short.") == "short."
    assert len(cut_middle(message)) < 1100
    assert cut_middle(message).startswith("There is no 'x'")
    assert cut_middle(message).endswith("; choose one.")


@pytest.mark.parametrize("columns", ["20", "80", "250"])
def test_a_table_is_never_cut(columns: str, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    path = "/".join(["folder"] * 60)
    table = Table(box=None)
    table.add_column("Name")
    table.add_column("Weights")
    table.add_row("last", path)
    print_table(table)
    assert path in capsys.readouterr().out


def test_class_names_and_errors_of_files_cannot_reach_the_terminal_raw(tmp_path: Path, run_here) -> None:
    names = ["\x1b[31mzero", *map(str, range(1, 10))]
    model = sf.create_model("spikformer_tiny_digits")
    model.card = replace(open_dataset("digits").card("spikformer"), class_names=names)
    path = tmp_path / "evil\x1b[2J.safetensors"
    sf.save(model, path)
    said = run_here("evaluate", path, code=2)
    assert "\x1b" not in said.stdout + said.stderr
    Image.new("L", (8, 8), 99).save(tmp_path / "a.png")
    said = run_here("predict", path, tmp_path / "a.png", tmp_path / "\x1b[1Anone.png", "--top", 10, code=1)
    assert "\x1b" not in said.stdout + said.stderr


def test_names_with_newlines_cannot_forge_a_line(weights: Path, tmp_path: Path, run_here) -> None:
    forged = "spikformer predict: all is well."
    model = sf.load(weights)
    names = (f"zero\n{forged}", *map(str, range(1, 10)))
    sf.save(model, weights, replace(model.card, class_names=names))
    Image.new("L", (8, 8), 99).save(tmp_path / f"a\n{forged}", "png")
    (tmp_path / f"none\n{forged}.png").touch()
    said = run_here("predict", weights, *tmp_path.glob("*well*"), tmp_path / f"\n{forged}", "--top", 10, code=1)
    assert said.stdout.count(forged) + said.stderr.count(forged) >= 3
    assert not any(line.strip().startswith(forged) for line in (said.stdout + said.stderr).splitlines())
    said = run_here("evaluate", tmp_path / f"\n{forged}", code=2)
    assert len(said.stderr.splitlines()) == 1


def test_an_answer_survives_a_name_that_no_encoding_has(weights: Path, tmp_path: Path, run_here) -> None:
    path = tmp_path / os.fsdecode(b"\xff.png")
    try:
        Image.new("L", (8, 8), 99).save(path)
    except OSError:
        pytest.skip("this file system takes no such name")
    run_here("predict", weights, path, "--csv", tmp_path / "out.csv")
    header, row = (tmp_path / "out.csv").read_text().splitlines()
    assert row.startswith(f"{tmp_path}/\\udcff.png,")
    assert row.count(",") == header.count(",")


def test_a_terminal_that_lacks_letters_gets_escapes() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "60"}
    code = "import sys; from spikformer.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "attention", "--help"]
    done = subprocess.run(words, capture_output=True, env=environment, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u1d40" in done.stdout


@dataclass(frozen=True)
class Options:
    model: ModelConfig = field(default_factory=ModelConfig)
    threads: int | None = 2
    layer: str | None = None
    share: float | None = None
    data: Path | None = None
    range: tuple[float, float] | None = None
    scales: tuple[float, ...] | None = None


def parse(*words: str) -> Options:
    options: Options = parse_options(Options, "train", "", list(words))
    return options


def test_a_field_of_settings_raises_its_own_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FieldError) as raised:
        parse("--model.tau", "0.5")
    assert raised.value.field == "tau"
    assert capsys.readouterr().err == ""


def test_other_mistakes_are_shown_with_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse("--threads", "many")
    assert stopped.value.code == 2
    assert "--threads" in capsys.readouterr().err


def test_optional_values_are_words_or_none() -> None:
    given = parse("--threads", "None", "--layer", "head", "--share", "0.5", "--data", "folder")
    assert (given.threads, given.layer, given.share, given.data) == (None, "head", 0.5, Path("folder"))
    assert parse("--data", "None").data is None
    assert parse().threads == 2


def test_usage_names_what_is_meant(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("--help")
    shown = capsys.readouterr().out
    assert "STR" not in shown
    assert "{None}" not in shown


def test_lists_of_numbers_are_numbers_or_none(capsys: pytest.CaptureFixture[str]) -> None:
    given = parse("--range", "0.5", "1", "--scales", "1", "2", "3")
    assert (given.range, given.scales) == ((0.5, 1.0), (1.0, 2.0, 3.0))
    given = parse("--range", "None", "--scales", "None")
    assert (given.range, given.scales) == (None, None)
    for words in (("--range", "0.5"), ("--range", "0.5", "wide"), ("--scales", "wide")):
        with pytest.raises(SystemExit) as stopped:
            parse(*words)
        assert stopped.value.code == 2
        assert words[0] in capsys.readouterr().err
