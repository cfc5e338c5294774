"""Wrong inputs: a ValueError that names what was expected and what was given."""

import pytest
import torch
from tests.mistakes import field_error, mistake

import spikformer as sf
from spikformer.analysis.specimens import distinct_models, shrunk
from spikformer.config import check_frame
from spikformer.errors import InputError
from spikformer.models.inputs import finite_checks


@pytest.fixture
def model() -> sf.Spikformer:
    return sf.create_model("spikformer_tiny_digits", in_channels=3).eval()


@pytest.mark.parametrize(
    ("x", "field", "shown"),
    [
        (torch.randn(3, 8, 8), "dimensions", ("[3, 8, 8]", "x[None]")),
        (torch.randn(2, 1, 1, 3, 8, 8), "dimensions", (6,)),
        (torch.randn(2, 1, 8, 8), "channels", (3, 1)),
        (torch.randn(2, 3, 16, 8), "size", ("8×8", "16×8")),
        (torch.randn(2, 3, 8, 8).double(), "dtype", ("torch.float32", "torch.float64")),
        (torch.randint(0, 255, (2, 3, 8, 8), dtype=torch.uint8), "dtype", ("torch.float32", "torch.uint8")),
        (torch.randn(0, 3, 8, 8), "batch", ("[0, 3, 8, 8]",)),
        (torch.randn(0, 2, 3, 8, 8), "batch", ("[0, 2, 3, 8, 8]",)),
        ([[1.0]], "type", ("torch.Tensor", "list")),
    ],
)
def test_a_wrong_input_is_named(model: sf.Spikformer, x, field: str, shown: tuple[object, ...]) -> None:
    for call in (model, model.forward_steps):
        with mistake(InputError, *shown, field=field):
            call(x)


def test_an_open_size_must_still_be_divisible() -> None:
    model = sf.create_model("spikformer_tiny_digits", image_size=None)
    assert model(torch.randn(2, 1, 6, 10)).shape == (2, 10)
    with field_error("image_size", 2, "7×8"):
        model(torch.randn(2, 1, 7, 8))


@pytest.mark.parametrize("name", distinct_models())
def test_only_possible_sizes_are_suggested(name: str) -> None:
    config = shrunk(name)
    (height, width), patch = config.image_size, config.patch_size
    for size in ((height + 1, width), (height + patch, width)):
        with mistake(InputError, f"{height}×{width}", f"{size[0]}×{width}", field="size") as caught:
            check_frame((1, config.in_channels, *size), config)
        assert (f"image_size={size}" in str(caught.value)) == (size[0] % patch == 0)


def test_a_stream_is_checked(model: sf.Spikformer) -> None:
    state, frame = model.initial_state(2), torch.randn(2, 3, 8, 8)
    with field_error("dimensions", "[B, C, H, W]", "[4, 2, 3, 8, 8]"):
        model.step(torch.randn(4, 2, 3, 8, 8), state)
    _, later = model.step(frame, state)
    deeper = sf.create_model("spikformer_tiny_digits", in_channels=3, depth=3).eval()
    _, of_deeper = deeper.step(frame, deeper.initial_state(2))
    for wrong in (model.initial_state(1), of_deeper, None, (), later._replace(voltages=later.voltages[:1])):
        with field_error("state"):
            model.step(frame, wrong)
    with field_error("state", 2, 1):
        model.step(frame[:1], later)
    with field_error("training"):
        model.train().step(frame, state)


def test_a_stream_of_the_wrong_size_is_named() -> None:
    model = sf.create_model("spikformer_tiny_digits", image_size=None).eval()
    _, state = model.step(torch.randn(2, 1, 8, 8), model.initial_state(2))
    with field_error("initial", "[2, 32, 4, 4]", "[2, 32, 8, 8]"):
        model.step(torch.randn(2, 1, 4, 4), state)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_are_checked_where_it_is_asked_for(model: sf.Spikformer, value: float) -> None:
    x, state = torch.full((2, 3, 8, 8), value), model.initial_state(2)
    model(x)  # checks no values, for that would wait for the device
    with finite_checks():
        for call in (lambda: model(x), lambda: model.step(x, state)):
            with mistake(InputError, field="values"):
                call()
        model(torch.zeros(2, 3, 8, 8))


@pytest.mark.parametrize("batch_size", [1, 7, 8, 9])
@pytest.mark.parametrize("time_steps", [1, 4, 8])
def test_frames_bring_any_number_of_steps_whatever_the_batch(time_steps: int, batch_size: int) -> None:
    model = sf.create_model("spikformer_tiny_digits_dvs", time_steps=8, depth=1).eval()
    with torch.no_grad():
        assert model.forward_steps(torch.zeros(time_steps, batch_size, 2, 16, 16)).shape == (time_steps, batch_size, 10)


@pytest.mark.parametrize("batch_size", [0, -1, 2.0])
def test_an_initial_state_needs_samples(model: sf.Spikformer, batch_size) -> None:
    with field_error("batch_size", batch_size):
        model.initial_state(batch_size)


def test_autocast_takes_narrow_inputs_but_not_wide_ones(model: sf.Spikformer) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(torch.randn(2, 3, 8, 8).bfloat16()).shape == (2, 10)
        with mistake(InputError, "torch.float64", field="dtype"):
            model(torch.randn(2, 3, 8, 8).double())


@pytest.mark.parametrize("name", [name for name in distinct_models() if not name.endswith("imagenet")])
def test_shapes_can_be_computed_without_data(name: str) -> None:
    with torch.device("meta"):
        model = sf.create_model(name).eval()
        config = model.config
        shape = (2, config.in_channels, *config.image_size)
        x = torch.empty((config.time_steps, *shape) if config.in_channels == 2 else shape)
    assert model(x).shape == (2, config.num_classes)
