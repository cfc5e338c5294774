"""Training as a function: events, overrides, resuming, and mistakes that raise before anything is written."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from spikformer.data import DataSet, open_dataset
from spikformer.runs.folder import Run
from spikformer.runs.progress import Event, Finished, Started, Stopped, describe_event, event_to_dict
from spikformer.runs.train import train
from spikformer.training import DivergedError, Epoch, Iteration, get_recipe

SMALL = {"epochs": 2, "model": {"depth": 1, "embed_dim": 16}}


@pytest.fixture(scope="module")
def digits() -> DataSet:
    data = open_dataset("digits")
    few = {name: data.split(name).take(np.arange(count)) for name, count in (("train", 128), ("validation", 40))}
    return replace(data, **few, test=data.split("test").take(np.arange(40)))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, digits: DataSet) -> tuple[Run, list[Event]]:
    events: list[Event] = []
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return train(data=digits, output=folder, on_event=events.append, **SMALL), events


def same_weights(one: Path, other: Path) -> bool:
    ours, theirs = load_file(one), load_file(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_run_tells_its_settings_metrics_and_results(whole: tuple[Run, list[Event]]) -> None:
    run, _ = whole
    assert run.recipe.model.depth == 1
    assert run.description.recipe == "spikformer_tiny_digits"
    assert [row["epoch"] for row in run.metrics] == [1, 2]
    assert run.results is not None
    assert run.results.last.epoch == 2
    assert run.results.best is not None
    assert run.weights == run.best


def test_events_come_in_order_and_as_plain_data(whole: tuple[Run, list[Event]]) -> None:
    run, events = whole
    kinds = [type(event) for event in events]
    assert kinds == [Started, *[Iteration, Iteration, Epoch] * 2, Finished]
    start = events[0]
    assert isinstance(start, Started)
    assert (start.num_train_samples, start.total_epochs, start.iterations_per_epoch) == (128, 2, 2)
    plain = [event_to_dict(event) for event in events]
    assert plain[1]["event"] == "iteration"
    assert plain[-1]["last"]["weights"] == str(run.last)
    assert [len(describe_event(event)) for event in events] == [1, 0, 0, 1, 0, 0, 1, 0]


@pytest.mark.parametrize("stop_after", [1, 3])
def test_a_stopped_run_resumes_to_the_same_weights(
    whole: tuple[Run, list[Event]], digits: DataSet, tmp_path: Path, stop_after: int
) -> None:
    events: list[Event] = []

    def stop() -> bool:
        return sum(isinstance(event, Iteration) for event in events) + 1 >= stop_after

    run = train(data=digits, output=tmp_path / "run", on_event=events.append, stop=stop, **SMALL)
    assert run.results is None
    assert isinstance(events[-1], Stopped)
    resumed = train(data=digits, output=tmp_path / "run", resume=True)
    assert resumed.results is not None
    assert same_weights(resumed.last, whole[0].last)


def test_a_recipe_of_ones_own_needs_a_folder(digits: DataSet, tmp_path: Path) -> None:
    recipe = get_recipe("spikformer_tiny_digits").override(**SMALL | {"epochs": 1})
    with pytest.raises(ValueError, match="output"):
        train(recipe, data=digits)
    run = train(recipe, data=digits, output=tmp_path / "run")
    assert run.description.recipe == "custom"
    assert train(data=digits, output=tmp_path / "run", resume=True).recipe == run.recipe


def test_a_run_that_diverges_raises(digits: DataSet, tmp_path: Path) -> None:
    settings = SMALL | {"epochs": 9, "learning_rate": 1e15, "warmup_epochs": 0.0, "clip_gradient": None}
    with pytest.raises(DivergedError) as caught:
        train(data=digits, output=tmp_path / "run", **settings)
    assert caught.value.learning_rate > 1e10
    assert Run(tmp_path / "run").results is None


MISTAKES: dict[str, Callable[[Path, Path], object]] = {
    "there is a run": lambda whole, new: train(output=whole),
    "changed settings": lambda whole, new: train(output=whole, resume=True, epochs=1),
    "nothing to resume": lambda whole, new: train(output=new, resume=True),
    "from and resume": lambda whole, new: train(output=whole, resume=True, from_weights=whole / "last.safetensors"),
    "resume and overwrite": lambda whole, new: train(output=whole, resume=True, overwrite=True),
    "another recipe": lambda whole, new: train("spikformer_tiny_digits_dvs", output=whole, resume=True),
    "classes": lambda whole, new: train(output=new, model={"num_classes": 5}),
    "validation": lambda whole, new: train(output=new, validation_share=0.2),
    "pretrained": lambda whole, new: train(
        "spikformer_8_384_cifar10_transfer", output=new, data=open_dataset("digits")
    ),
    "recipe": lambda whole, new: train("spikformer_4_384_cifar", output=new),
    "rate": lambda whole, new: train(output=new, learning_rate=-1.0),
    "setting": lambda whole, new: train(output=new, lr=1.0),
    "workers": lambda whole, new: train(output=new, workers=-1),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=list(MISTAKES))
def test_mistakes_raise_and_write_nothing(
    mistake: Callable[[Path, Path], object], whole: tuple[Run, list[Event]], tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole[0].path.iterdir()}
    with pytest.raises((ValueError, FileNotFoundError)):
        mistake(whole[0].path, tmp_path / "new")
    assert {path: path.stat().st_mtime_ns for path in whole[0].path.iterdir()} == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_the_users_own_stay(tmp_path: Path, digits: DataSet, overwrite: bool) -> None:
    (tmp_path / "metrics.csv").write_text("mine")
    with pytest.raises(ValueError, match=r"metrics\.csv"):
        train(data=digits, output=tmp_path, overwrite=overwrite, **SMALL)
    assert (tmp_path / "metrics.csv").read_text() == "mine"


def test_a_finished_run_goes_on_for_more_epochs(digits: DataSet, tmp_path: Path) -> None:
    first = train(data=digits, output=tmp_path / "run", **SMALL | {"epochs": 1})
    longer = train(data=digits, output=tmp_path / "run", resume=True, epochs=2)
    assert (len(longer.metrics), longer.recipe.epochs) == (2, 2)
    assert longer.results is not None
    assert longer.results.last.epoch == 2
    with pytest.raises(ValueError, match="more"):
        train(data=digits, output=first.path, resume=True, epochs=1)


def test_few_samples_are_taken_from_all_over_the_split(digits: DataSet, tmp_path: Path) -> None:
    events: list[Event] = []
    run = train(data=digits, output=tmp_path / "run", max_samples=64, on_event=events.append, **SMALL | {"epochs": 1})
    assert isinstance(events[0], Started)
    assert events[0].num_train_samples == run.description.num_train_samples == 64


def test_firing_rates_of_every_layer_go_to_tensorboard_once_an_epoch(whole: tuple[Run, list[Event]]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, _ = whole
    board = EventAccumulator(str(run.path / "tensorboard"))
    board.Reload()
    layers = [tag for tag in board.Tags()["scalars"] if tag.startswith("firing/")]
    assert "firing/stem.stages.0.neuron" in layers
    assert "firing/blocks.0.mlp.hidden.neuron" in layers
    for layer in layers:
        assert [event.step for event in board.Scalars(layer)] == [1, 2]
        assert all(0 <= event.value <= 1 for event in board.Scalars(layer))
