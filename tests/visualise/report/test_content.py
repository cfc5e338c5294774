"""What a report refuses to hold."""

import pytest

from spikformer.visualise.report import Accuracy, Report


def test_a_class_list_of_the_wrong_length_is_refused(make_run) -> None:
    with pytest.raises(ValueError, match="The run first names 2 classes, and its confusion has 3"):
        make_run(class_names=("cat", "dog"), confusion=[[1, 0, 0]] * 3)


def test_a_run_without_metrics_is_refused(make_run) -> None:
    with pytest.raises(ValueError, match="The run first has no finished epoch"):
        make_run(history=[])


def test_a_report_needs_runs_with_names_of_their_own(make_run, report_of) -> None:
    with pytest.raises(ValueError, match="give at least one"):
        report_of()
    run = make_run()
    with pytest.raises(ValueError, match="names of their own, got first, first"):
        Report([run, run], "1", "now")


def test_a_class_without_samples_has_no_accuracy() -> None:
    accuracy = Accuracy("test", 5, 0.8, 1.0, 0.1, [0.8], [[3, 1], [0, 0]])
    assert accuracy.by_class == [0.75, None]


def test_the_best_epoch_is_shown_where_there_is_one(make_run) -> None:
    both, alone = make_run(), make_run(best=None)
    assert (both.shown.kind, [each.kind for each in both.weights]) == ("best", ["last", "best"])
    assert (alone.shown.kind, [each.kind for each in alone.weights]) == ("last", ["last"])
    assert both.shown.file_name == "best.safetensors"


def test_a_run_is_finished_when_all_its_epochs_are(make_run) -> None:
    assert make_run().finished
    assert not make_run(planned_epochs=3).finished
    assert make_run().seconds == 60.0
