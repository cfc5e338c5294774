"""Training as a function: events, overrides, resuming, and mistakes that raise before anything is written."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.mistakes import field_error, file_error, mistake
from torch import nn

from spikformer.config import ModelConfig, NetworkConfig, SpikeDrivenConfig, SpikingformerConfig
from spikformer.data import DataSet, open_dataset
from spikformer.errors import FieldError
from spikformer.models import create_model, load
from spikformer.runs.evaluate import evaluate
from spikformer.runs.folder import Run
from spikformer.runs.progress import Event, Finished, Started, Stopped, describe_event, event_to_dict
from spikformer.runs.train import train
from spikformer.training import DivergedError, Epoch, Iteration, get_recipe

MODEL = ModelConfig(pool_after="norm")
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


def test_a_run_with_a_teacher_resumes_to_the_same_weights(
    whole: tuple[Run, list[Event]], digits: DataSet, tmp_path: Path
) -> None:
    taught = train(data=digits, output=tmp_path / "taught", teacher=whole[0].path, **SMALL)
    assert taught.recipe.distillation == 0.5
    assert not same_weights(taught.last, whole[0].last)
    train(data=digits, output=tmp_path / "stopped", teacher=whole[0].path, stop=lambda: True, **SMALL)
    resumed = train(data=digits, output=tmp_path / "stopped", resume=True)
    assert same_weights(resumed.last, taught.last)
    weighed = train(data=digits, output=tmp_path / "weighed", teacher=whole[0].weights, distillation=0.9, **SMALL)
    assert weighed.recipe.distillation == 0.9


def test_a_recipe_of_ones_own_needs_a_folder(digits: DataSet, tmp_path: Path) -> None:
    recipe = get_recipe("spikformer_tiny_digits").override(**SMALL | {"epochs": 1})
    with field_error("output"):
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
    "slicing of images": lambda whole, new: train(output=new, preprocessing={"slicing": "time"}),
    "two means of one channel": lambda whole, new: train(output=new, preprocessing={"mean": (0, 0), "std": (1, 1)}),
    "mean alone": lambda whole, new: train(output=new, preprocessing={"mean": (0.1,)}),
    "own data with options": lambda whole, new: train(
        output=new, data=open_dataset("digits"), preprocessing={"mean": (0.1,), "std": (1.0,)}
    ),
    "another architecture": lambda whole, new: train(output=whole, resume=True, model=SpikingformerConfig()),
    "setting of another architecture": lambda whole, new: train(output=new, model={"widths": (1, 2)}),
    "own network and weights": lambda whole, new: train(
        output=new, model=create_model("spikformer_tiny_digits"), from_weights=whole / "last.safetensors"
    ),
    "frames of images": lambda whole, new: train(output=new, augmentation={"num_frames": 3}),
    "workers": lambda whole, new: train(output=new, workers=-1),
    "a share without a teacher": lambda whole, new: train(output=new, distillation=0.5),
    "a teacher that is not there": lambda whole, new: train(output=new, teacher=new / "none.safetensors"),
    "a teacher of other pictures": lambda whole, new: train(
        output=new, teacher=whole, data=open_dataset("digits"), model={"image_size": (16, 16)}
    ),
}


@pytest.mark.parametrize("use", MISTAKES.values(), ids=list(MISTAKES))
def test_mistakes_raise_and_write_nothing(
    use: Callable[[Path, Path], object], whole: tuple[Run, list[Event]], tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole[0].path.iterdir()}
    with pytest.raises((ValueError, FileNotFoundError)):
        use(whole[0].path, tmp_path / "new")
    assert {path: path.stat().st_mtime_ns for path in whole[0].path.iterdir()} == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_of_the_users_own_stay(tmp_path: Path, digits: DataSet, overwrite: bool) -> None:
    (tmp_path / "metrics.csv").write_text("mine")
    with file_error(tmp_path, "unfit", "metrics.csv"):
        train(data=digits, output=tmp_path, overwrite=overwrite, **SMALL)
    assert (tmp_path / "metrics.csv").read_text() == "mine"


def test_a_finished_run_goes_on_for_more_epochs(digits: DataSet, tmp_path: Path) -> None:
    first = train(data=digits, output=tmp_path / "run", **SMALL | {"epochs": 1})
    longer = train(data=digits, output=tmp_path / "run", resume=True, epochs=2)
    assert (len(longer.metrics), longer.recipe.epochs) == (2, 2)
    assert longer.results is not None
    assert longer.results.last.epoch == 2
    with field_error("epochs", 2, 1):
        train(data=digits, output=first.path, resume=True, epochs=1)


@pytest.mark.parametrize(
    "config",
    [SpikingformerConfig(depth=1), SpikeDrivenConfig(depth=1), MODEL.override(depth=1)],
    ids=lambda config: type(config).__name__,
)
def test_any_architecture_is_trained_resumed_and_read(config: NetworkConfig, digits: DataSet, tmp_path: Path) -> None:
    model = config.override(image_size=(8, 8), in_channels=1, embed_dim=16, num_heads=2, time_steps=2)
    run = train(data=digits, output=tmp_path / "run", model=model, epochs=1)
    assert run.recipe.model == model
    assert type(run.recipe.model) is type(config)
    assert type(load(run.weights).config) is type(config)
    longer = train(data=digits, output=tmp_path / "run", resume=True, epochs=2)
    assert longer.recipe.model == model
    assert len(longer.metrics) == 2


def test_a_network_of_ones_own_is_trained_as_it_is(digits: DataSet, tmp_path: Path) -> None:
    network = create_model("spikformer_tiny_digits", depth=1, embed_dim=16)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    events: list[Event] = []
    run = train(data=digits, output=tmp_path / "run", model=network, epochs=1, on_event=events.append)
    assert run.recipe.model == network.config
    assert any(not torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    last = load(run.last).state_dict()
    assert all(torch.equal(last[name], tensor) for name, tensor in network.state_dict().items())


def wrong_networks() -> dict[str, nn.Module]:
    other = create_model("spikformer_tiny_digits", depth=1)
    other.head = nn.Sequential(other.head)
    classes = create_model("spikformer_tiny_digits", depth=1, num_classes=3)
    return {"head": other, "model.num_classes": classes, "model": nn.Linear(3, 3)}


@pytest.mark.parametrize("field", list(wrong_networks()))
def test_a_network_that_cannot_be_kept_raises_before_training(field: str, digits: DataSet, tmp_path: Path) -> None:
    with mistake(FieldError) as caught:
        train(data=digits, output=tmp_path / "run", model=wrong_networks()[field])
    assert field.startswith(caught.value.field)
    assert not (tmp_path / "run").exists()


def test_a_run_folder_without_an_architecture_is_a_spikformers(digits: DataSet, tmp_path: Path) -> None:
    """As of earlier versions, whose recipes had fewer settings."""
    first = train(data=digits, output=tmp_path / "run", **SMALL | {"epochs": 1})
    path = first.path / "recipe.json"
    content = json.loads(path.read_text())
    later = ("architecture", "preprocessing", "optimiser", "schedule", "drop_epochs", "loss", "tet_lambda")
    content["settings"] = {name: value for name, value in content["settings"].items() if name not in later}
    for name in ("crop_scale", "color_jitter", "num_frames", "repeats"):
        del content["settings"]["augmentation"][name]
    path.write_text(json.dumps(content))
    assert isinstance(first.recipe.model, ModelConfig)
    assert len(train(data=digits, output=first.path, resume=True, epochs=2).metrics) == 2


def test_accuracies_are_on_the_cards_of_the_weights(whole: tuple[Run, list[Event]]) -> None:
    run, _ = whole
    results = run.results
    assert results is not None
    for path, kept in ((run.last, results.last), (run.best, results.best)):
        assert kept is not None
        found = {result.split: result for result in load(path).card.results}
        assert {split: result.value for split, result in found.items()} == {
            "validation": kept.validation_accuracy,
            "test": kept.test_accuracy,
        }
        assert all(result.metric == "accuracy" for result in found.values())
        assert found["test"].command.split() == ["spikformer", "evaluate", path.name, "--split", "test"]
        assert date.fromisoformat(found["test"].date) <= date.today()


def test_what_is_on_the_card_is_what_evaluating_gives(tmp_path: Path) -> None:
    run = train(output=tmp_path / "run", max_samples=128, **SMALL | {"epochs": 1})
    for result in load(run.best).card.results:
        assert evaluate(run.best, split=result.split).top1 == result.value


def test_preprocessing_of_a_recipe_is_on_the_card_and_used_again(tmp_path: Path) -> None:
    small = SMALL | {"epochs": 1, "max_samples": 128}
    settings = {"mean": (0.3,), "std": (0.5,), "resampling": "nearest"}
    run = train(output=tmp_path / "images", preprocessing=settings, **small)
    seen = load(run.best).card.known_preprocessing
    assert (seen.mean, seen.std, seen.resampling) == ((0.3,), (0.5,), "nearest")
    assert run.results is not None
    assert evaluate(run.path).top1 == run.results.best.test_accuracy
    plain = train(output=tmp_path / "plain", **small)
    assert not same_weights(run.last, plain.last)
    events = train("spikformer_tiny_digits_dvs", output=tmp_path / "events", preprocessing={"slicing": "time"}, **small)
    assert load(events.best).card.known_preprocessing.slicing == "time"
    assert evaluate(events.path).top1 == events.results.best.test_accuracy
    assert train(output=run.path, resume=True, epochs=2).recipe.preprocessing.given() == settings


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
