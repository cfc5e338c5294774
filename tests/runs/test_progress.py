"""Metrics for TensorBoard, as TensorBoard reads them."""

import time
from pathlib import Path

import pytest

from spikformer.runs.progress import Board
from spikformer.training.progress import Iteration, Progress


def rows(*epochs: int, base: float = 0.0) -> list[dict[str, float]]:
    return [
        {"epoch": epoch, "train_loss": base + epoch, "learning_rate": 0.5 / epoch, "seconds": 2.0} for epoch in epochs
    ]


def write(folder: Path, epoch: int, metrics: list[dict[str, float]]) -> None:
    with Board(folder, Progress(epoch=epoch), enabled=True) as board:
        for row in metrics:
            board.add(row)


def read(folder: Path, tag: str) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def tags(folder: Path) -> set[str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return set(accumulator.Tags()["scalars"])


def test_what_is_added_is_read_back_by_epoch(tmp_path: Path) -> None:
    write(tmp_path / "tensorboard", 0, rows(1, 2, 3))
    assert tags(tmp_path / "tensorboard") == {"train/loss", "learning_rate", "seconds"}
    assert read(tmp_path / "tensorboard", "train/loss") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert read(tmp_path / "tensorboard", "learning_rate") == [(1, 0.5), (2, 0.25), (3, pytest.approx(0.5 / 3))]


def test_it_can_be_read_while_training_goes_on(tmp_path: Path) -> None:
    with Board(tmp_path, Progress(), enabled=True) as board:
        board.add(rows(1)[0])
        assert read(tmp_path, "train/loss") == [(1, 1.0)]


@pytest.mark.parametrize("epoch", [0, 1, 2, 3])
def test_going_on_from_an_epoch_forgets_later_ones(tmp_path: Path, epoch: int) -> None:
    """Also from the first epoch, which may have been written before its state was."""
    write(tmp_path, 0, rows(1, 2, 3))
    time.sleep(1.01 - time.time() % 1)  # TensorBoard reads files by their names, which begin with the second
    write(tmp_path, epoch, rows(*range(epoch + 1, 5), base=10.0))
    expected = [(number, number + (10.0 if number > epoch else 0.0)) for number in range(1, 5)]
    assert read(tmp_path, "train/loss") == expected


def test_a_board_that_is_not_enabled_writes_nothing(tmp_path: Path) -> None:
    with Board(tmp_path / "tensorboard", Progress(), enabled=False) as board:
        board.add(rows(1)[0])
    assert not (tmp_path / "tensorboard").exists()


def test_iterations_are_logged_beside_and_resume_where_they_were(tmp_path: Path) -> None:
    def iterate(done: int, *numbers: int) -> None:
        with Board(tmp_path, Progress(iteration=done), enabled=True) as board:
            for number in numbers:
                board.add_iteration(Iteration(number, 1, number, 9, float(10 * done + number), 0.1, 5.0, 1.0, 0.5))

    iterate(0, 1, 2, 3)
    time.sleep(1.01 - time.time() % 1)
    iterate(1, 2)
    assert read(tmp_path / "iterations", "iteration/loss") == [(1, 1.0), (2, 12.0)]
