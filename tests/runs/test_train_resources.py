"""How much of the data and of the machine a run takes."""

from pathlib import Path

import torch

from spikformer.runs.progress import Event, Started
from spikformer.runs.train import train

SMALL = {"epochs": 1, "max_samples": 64, "model": {"depth": 1, "embed_dim": 16}}


def test_few_samples_are_taken_from_all_over_the_split(tmp_path: Path) -> None:
    events: list[Event] = []
    run = train(output=tmp_path / "run", on_event=events.append, **SMALL)
    assert isinstance(events[0], Started)
    assert events[0].num_train_samples == run.description.num_train_samples == 64


def test_threads_are_as_many_as_asked_for(tmp_path: Path) -> None:
    before, seen = torch.get_num_threads(), set()
    try:
        train(
            output=tmp_path / "run",
            threads=before + 1,
            on_event=lambda _: seen.add(torch.get_num_threads()),
            **SMALL,
        )
    finally:
        torch.set_num_threads(before)
    assert seen == {before + 1}
