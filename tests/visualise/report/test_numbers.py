"""Numbers and settings as the page writes them."""

import pytest

from spikformer.visualise.report.numbers import (
    command,
    count,
    duration,
    energy,
    energy_in,
    percent,
    setting,
    three_digits,
    times,
)


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "0"),
        (640, "640"),
        (999, "999"),
        (999.6, "1.00 k"),
        (65_536, "65.5 k"),
        (9_324_730, "9.32 M"),
        (2.1e9, "2.10 G"),
    ],
)
def test_a_count_has_three_digits_and_a_unit(number: float, written: str) -> None:
    assert count(number) == written


@pytest.mark.parametrize(
    ("millijoules", "written"),
    [
        (11.577, "11.6 mJ"),
        (1.0, "1.00 mJ"),
        (0.9999, "1.00 mJ"),
        (2.86e-3, "2.86 µJ"),
        (1.5e-6, "1.50 nJ"),
        (0.0, "0 pJ"),
    ],
)
def test_an_energy_has_the_unit_that_suits_it(millijoules: float, written: str) -> None:
    assert energy(millijoules) == written


def test_energies_of_a_table_share_the_unit_of_the_largest() -> None:
    written = energy_in(0.0158)
    assert (written(0.0158), written(0.00286), written(0.00002)) == ("15.8 µJ", "2.86 µJ", "0.02 µJ")


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(None, "–"), (0.4, "0 s"), (59.6, "1 min 0 s"), (69, "1 min 9 s"), (3599.7, "1 h 0 min"), (90_061, "25 h 1 min")],
)
def test_a_duration_never_shows_sixty(seconds: float | None, written: str) -> None:
    assert duration(seconds) == written


def test_a_ratio_says_less_or_more() -> None:
    assert (times(5.508), times(1.0), times(0.5), times(0.0)) == ("5.51× less", "1.00× less", "2.00× more", "–")


def test_three_digits_of_any_number() -> None:
    numbers = (0, 0.004, 9.994, 9.996, 99.94, 99.96, 12_345, -0.5)
    assert [three_digits(each) for each in numbers] == ["0", "0.00", "9.99", "10.0", "99.9", "100", "12,345", "-0.50"]


def test_a_share_that_is_not_known_is_a_dash() -> None:
    assert (percent(0.98607), percent(None)) == ("98.61%", "–")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "none"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        (5e-4, "0.0005"),
        ("ssa", "ssa"),
        ([False, True], "no, yes"),
        ((32, 32), "32, 32"),
        ([], "none"),
        ({"a": 1, "b": None}, "a 1, b none"),
    ],
)
def test_a_setting_reads_as_people_write_it(value: object, written: str) -> None:
    assert setting(value) == written


def test_a_command_can_be_typed_again() -> None:
    assert command(["spikformer", "train", "two words"]) == "spikformer train 'two words'"
    assert command("as it was") == "as it was"
