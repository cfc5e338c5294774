"""What a report can hold, and what not."""

from tests.mistakes import field_error

from spikformer.visualise.report import Report


def test_a_class_list_of_the_wrong_length_is_an_error(make_run) -> None:
    with field_error("class_names", "first", 2, 3):
        make_run(class_names=("cat", "dog"), confusion=[[1, 0, 0]] * 3)


def test_a_run_without_metrics_is_an_error(make_run) -> None:
    with field_error("history", "first"):
        make_run(history=[])


def test_a_report_needs_runs_with_names_of_their_own(make_run, report_of) -> None:
    with field_error("runs"):
        report_of()
    run = make_run()
    with field_error("runs", "first, first"):
        Report([run, run], "1", "now")


def test_the_best_epoch_is_shown_where_there_is_one(make_run) -> None:
    both, alone = make_run(), make_run(best=None)
    assert (both.shown.kind, [each.kind for each in both.weights]) == ("best", ["last", "best"])
    assert (alone.shown.kind, [each.kind for each in alone.weights]) == ("last", ["last"])
    assert both.shown.file_name == "best.safetensors"


def test_a_run_is_finished_when_all_its_epochs_are(make_run) -> None:
    assert make_run().finished
    assert not make_run(planned_epochs=3).finished
    assert make_run().seconds == 60.0
