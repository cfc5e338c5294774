"""An engine file of every op, with class names that are not ASCII."""

from pathlib import Path

import pytest
from tests.engine.drawn import program_of_every_op

from spikformer.card import ModelCard
from spikformer.engine.file import write_compiled
from spikformer.engine.program import Compiled
from spikformer.preprocessing import Preprocessing


def write_saved(path: Path) -> None:
    seen = Preprocessing(kind="image", size=(8, 16), channels=2, mean=(0.5,), std=(0.25,))
    card = ModelCard(architecture="program", class_names=("Zoë", "<b>", "\U0001f642"), preprocessing=seen)
    write_compiled(Compiled(program_of_every_op(), card=card), path)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "net.engine"
    write_saved(path)
    return path
