"""The text and the rows of the page, and numbers and settings as it writes them."""

from dataclasses import replace

import numpy as np
import pytest

from spikformer.visualise.attention import BlockMaps
from spikformer.visualise.report import wording
from spikformer.visualise.report.wording import (
    command,
    duration,
    energy,
    energy_in,
    large_number,
    map_legend,
    percent,
    setting,
    three_digits,
    times,
)


def test_the_summary_says_what_matters(make_run) -> None:
    run = make_run()
    said = wording.run_summary(run)
    assert "spikformer_tiny_digits on digits classifies 87.50% of 16 test samples correctly" in said
    assert wording.run_summary(replace(run, network="SEW-ResNet-8")).startswith(
        "SEW-ResNet-8, by spikformer_tiny_digits on"
    )
    assert "best on validation, and on 81.25% after the last" in said
    assert "in 4 time steps with 158 k parameters, after 1 min 0 s of training" in said
    assert "15.8 µJ in its ANN twin" in said
    assert "after its last epoch, in" in wording.run_summary(replace(run, best=None))
    same = replace(run, best=replace(run.best, epoch=2))
    assert "after its last epoch, which is also best on validation" in wording.run_summary(same)


def test_a_network_that_does_not_spike_is_not_said_to(make_run) -> None:
    run = make_run(model={"neuron": "relu", "time_steps": 1, "attention": "softmax_float_value"})
    assert "in one time step" in wording.run_summary(run)
    assert "It does not spike; one inference costs" in wording.run_summary(run)
    assert "ANN twin" not in wording.run_summary(run)
    assert "does not spike" not in wording.run_summary(make_run(samples=[], traces=None))


def test_a_run_in_training_says_how_far_it_is(make_run) -> None:
    assert wording.progress(make_run()) is None
    assert "has finished 2 of 5 epochs" in wording.progress(make_run(planned_epochs=5))


def test_confusions_are_counted_from_the_most_frequent(make_run) -> None:
    run = make_run(confusion=[[5, 1, 0], [2, 3, 4], [0, 1, 9]])
    assert wording.confusions(run) == [("dog", "owl", 4), ("dog", "cat", 2), ("cat", "dog", 1)]
    assert wording.confusions(make_run()) == []


def test_best_and_worst_classes_are_named_with_their_equals(make_run) -> None:
    run = make_run(class_names=tuple("abcde"), confusion=[[1 if i == j else 0 for j in range(5)] for i in range(5)])
    assert wording.extremes(run) == "All classes have the same accuracy."
    mistaken = [list(row) for row in run.evaluation.confusion]
    mistaken[4] = [1, 0, 0, 0, 3]
    run = make_run(class_names=tuple("abcde"), confusion=mistaken)
    assert wording.extremes(run) == "Best: a, b, c and 1 more (100.00%). Worst: e (75.00%)."


def test_bars_of_classes_leave_out_those_without_samples(make_run) -> None:
    run = make_run(confusion=[[3, 1, 0], [0, 6, 0], [0, 0, 0]])
    assert wording.class_bars(run) == [("cat", 0.75, "3 of 4"), ("dog", 1.0, "6 of 6")]


def test_bars_of_steps_say_what_each_adds(make_run) -> None:
    evaluation = replace(make_run().evaluation, after_steps=[0.5, 0.75, 0.7])
    bars = wording.step_bars(make_run(evaluation=evaluation))
    assert bars == [("step 1", 0.5, ""), ("step 2", 0.75, "+25.00"), ("step 3", 0.7, "-5.00")]


def test_settings_that_differ_are_found_inside_others_too(make_run, report_of) -> None:
    one = make_run(settings={"seed": 7, "epochs": 2, "model": {"depth": 2, "tau": 2.0}})
    other = make_run(name="second", settings={"seed": 8, "epochs": 2, "model": {"depth": 2, "tau": 3.0, "new": None}})
    assert wording.differences(report_of(one, other)) == [
        ("seed", ["7", "8"]),
        ("model, tau", ["2", "3"]),
        ("model, new", ["–", "none"]),
    ]
    assert wording.differences(report_of(one)) == []


def test_only_runs_on_the_same_samples_are_ranked(make_run, report_of) -> None:
    one, other = make_run(), make_run(name="second", best=replace(make_run().best, accuracy=0.9))
    assert "2 runs on digits: second is the most accurate, 90.00% of 16" in wording.overview(report_of(one, other))
    elsewhere = replace(other, data="mnist")
    assert "not all on the same data" in wording.overview(report_of(one, elsewhere))


def test_a_title_names_a_few_runs_and_counts_many(make_run, report_of) -> None:
    runs = [make_run(name=name) for name in "abcd"]
    assert wording.title(report_of(*runs[:3])) == "a · b · c"
    assert wording.title(report_of(*runs)) == "4 runs"


def test_every_layer_has_digits_in_the_unit_of_the_table(make_run) -> None:
    run = make_run()
    unit, picojoules = wording.layer_unit(run)
    most = max(
        run.energy.energy_pj(layer.operations(kind)) for layer in run.energy.layers for kind in wording.CONVENTIONS
    )
    assert {"pJ": 1, "nJ": 1e3, "µJ": 1e6, "mJ": 1e9}[unit] == picojoules
    assert 100 <= most / picojoules < 100_000


def test_maps_are_explained_by_what_they_show(make_run) -> None:
    run = make_run()
    (sample, *_) = run.samples
    plain = map_legend(run)
    masks = [BlockMaps(1, "mask", np.ones((4, 2, 2))), BlockMaps(2, "masked Q", np.ones((4, 2, 2)))]
    masked = map_legend(replace(run, samples=[replace(sample, attention=masks)]))
    assert ("Attention:" in plain, "Mask:" in plain, "Masked" in plain) == (True, False, False)
    assert ("Attention:" in masked, "Mask:" in masked, "Masked q:" in masked) == (False, True, False)
    assert "Masked Q:" in masked


def test_configuration_has_every_setting_once(make_run) -> None:
    run = make_run(settings={"seed": 7, "model": {"depth": 2}, "augmentation": {"flip": 0.5}})
    tables = dict(wording.configuration(run))
    assert tables["Recipe"] == {"recipe": "spikformer_tiny_digits", "seed": 7}
    assert (tables["Model"], tables["Augmentation"]) == ({"depth": 2}, {"flip": 0.5})
    assert tables["Environment"] == {"torch": "2.x"}  # the command has a place of its own


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
    assert large_number(number) == written


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
