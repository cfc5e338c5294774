"""What goes wrong while training: a loss that diverges, files that cannot be read, batches that do not fit."""

import logging
import pickle
from pathlib import Path

import pytest
import torch
from tests.mistakes import field_error, mistake, shows

from spikformer.training import DivergedError, Epoch
from spikformer.training.state import load_state


def test_a_loss_that_is_no_number_stops_with_step_rate_and_last_good_state(make_trainer, tmp_path: Path) -> None:
    trainer = make_trainer(state_path=tmp_path / "state.safetensors", save_seconds=0.0)
    trainer.start()
    events = trainer.run()
    next(events)
    with torch.no_grad():
        trainer.model.head.bias.fill_(float("nan"))
    with mistake(DivergedError, tmp_path / "state.safetensors") as caught:
        next(events)
    assert (caught.value.iteration, caught.value.epoch) == (2, 1)
    assert load_state(tmp_path / "state.safetensors").progress.iteration == 1


@pytest.mark.parametrize("what", ["head.bias", "stem.stages.0.norm.running_var"])
def test_ruined_weights_with_a_loss_that_is_a_number_are_never_kept(what: str, make_trainer, tmp_path: Path) -> None:
    """The last step of an epoch may do it: nothing of that epoch is given out or saved."""
    trainer = make_trainer(state_path=tmp_path / "state.safetensors", epochs=2)
    trainer.start()
    events = trainer.run()
    for _ in range(3 + 2):  # an epoch, and both steps of the next one
        next(events)
    with torch.no_grad():
        trainer.model.state_dict()[what].fill_(float("inf"))
    with pytest.raises(DivergedError) as caught:
        next(events)
    assert (caught.value.iteration, caught.value.epoch) == (4, 2)
    assert 0 < caught.value.learning_rate < 0.01
    assert load_state(tmp_path / "state.safetensors").progress.epoch == 1


def test_a_damaged_photograph_does_not_stop_training(make_trainer, photographs, caplog) -> None:
    trainer = make_trainer(photographs, epochs=3, batch_size=16)
    trainer.start()
    with caplog.at_level(logging.WARNING, "spikformer"):
        epochs = [event for event in trainer.run() if isinstance(event, Epoch)]
    assert [epoch.metrics["unreadable"] for epoch in epochs] == [1, 2, 3]
    assert sum(shows(message, "3.jpg") for message in caplog.messages) == 1
    measured = trainer.evaluate("test")
    assert (measured.num_samples, measured.unreadable) == (7, 1)


def test_strict_training_stops_at_a_damaged_photograph(make_trainer, photographs) -> None:
    trainer = make_trainer(photographs, batch_size=16, strict=True)
    trainer.start()
    with mistake(ValueError, "3.jpg"):
        list(trainer.run())


def test_wrong_batches_raise(make_trainer) -> None:
    with field_error("batch_size", 512, "digits", 128):
        make_trainer(batch_size=512)
    with field_error("batch_size", 64, "1 × 3"):
        make_trainer(accumulate=3)


def test_a_divergence_crosses_processes_with_its_fields() -> None:
    error = pickle.loads(pickle.dumps(DivergedError("The loss is NaN.", 7, 2, 0.1)))
    assert (str(error), error.iteration, error.epoch, error.learning_rate) == ("The loss is NaN.", 7, 2, 0.1)
