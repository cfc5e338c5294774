"""What an epoch reports: its best, its time, and nothing of samples that a strict run must not pass over."""

import time

import pytest
from tests.mistakes import mistake

from spikformer.data import DataSet
from spikformer.training import Epoch


def test_of_equal_epochs_the_first_is_best(make_trainer) -> None:
    trainer = make_trainer(epochs=6, learning_rate=1e-12, warmup_learning_rate=1e-12, final_learning_rate=1e-12)
    trainer.start()
    epochs = [event for event in trainer.run() if isinstance(event, Epoch)]
    assert len({epoch.metrics["validation_accuracy"] for epoch in epochs}) < 6, "some are equal, or this proves nothing"
    shares = [epoch.metrics["validation_accuracy"] for epoch in epochs]
    assert trainer.progress.best_epoch == shares.index(max(shares)) + 1
    assert [epoch.best for epoch in epochs] == [share > max([-1, *shares[:n]]) for n, share in enumerate(shares)]


def test_seconds_are_those_of_training_over_all_epochs(make_trainer) -> None:
    trainer = make_trainer(epochs=3)
    trainer.start()
    spent = 0.0
    last = time.perf_counter()
    for event in trainer.run():
        now = time.perf_counter()
        spent += 0.0 if isinstance(event, Epoch) else now - last
        last = now
    seconds = [row["seconds"] for row in trainer.progress.history]
    assert seconds == sorted(seconds)
    assert trainer.progress.seconds == seconds[-1] == pytest.approx(spent, rel=0.2)
    rates = [row["samples_per_second"] for row in trainer.progress.history]
    assert sum(128 / rate for rate in rates) == pytest.approx(seconds[-1], rel=0.01)


def test_a_strict_trainer_evaluates_strictly(make_trainer, photographs: DataSet) -> None:
    strict, lenient = (make_trainer(photographs, batch_size=16, strict=strict) for strict in (True, False))
    strict.start()
    lenient.start()
    with mistake(ValueError, "3.jpg"):
        strict.evaluate("test")
    assert lenient.evaluate("test").unreadable == 1
