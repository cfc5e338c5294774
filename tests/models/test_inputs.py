"""Wrong inputs: a ValueError that names what was expected and what was given."""

import pytest
import torch

import spikformer as sf


@pytest.fixture
def model() -> sf.Spikformer:
    return sf.create_model("spikformer_tiny_digits", in_channels=3).eval()


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (torch.randn(3, 8, 8), r"Expected images \[B, C, H, W\] .* got 3 dimensions \[3, 8, 8\]; .*unsqueeze"),
        (torch.randn(2, 1, 1, 3, 8, 8), r"got 6 dimensions"),
        (torch.randn(2, 1, 8, 8), r"Expected 3 channels, got 1"),
        (torch.randn(2, 3, 16, 8), r"Expected images of 8×8, got 16×8"),
        (torch.randn(2, 3, 8, 8).double(), r"Expected torch.float32, the model's dtype, got torch.float64"),
        (torch.randint(0, 255, (2, 3, 8, 8), dtype=torch.uint8), r"Expected torch.float32, .* got torch.uint8"),
        (torch.full((2, 3, 8, 8), float("nan")), r"Expected finite inputs, got NaN"),
        (torch.full((2, 3, 8, 8), float("inf")), r"Expected finite inputs, got infinity"),
        (torch.randn(0, 3, 8, 8), r"at least one sample and one step, got an empty batch \[0, 3, 8, 8\]"),
        (torch.randn(0, 2, 3, 8, 8), r"got an empty batch"),
        ([[1.0]], r"Expected a torch.Tensor, got list"),
    ],
)
def test_a_wrong_input_is_named(model: sf.Spikformer, x, sentence: str) -> None:
    for call in (model, model.forward_steps):
        with pytest.raises(ValueError, match=sentence):
            call(x)


def test_an_open_size_must_still_be_divisible() -> None:
    model = sf.create_model("spikformer_tiny_digits", image_size=None)
    assert model(torch.randn(2, 1, 6, 10)).shape == (2, 10)
    with pytest.raises(ValueError, match=r"divisible by the patch size 2, got 7×8"):
        model(torch.randn(2, 1, 7, 8))


def test_a_stream_is_checked(model: sf.Spikformer) -> None:
    state, frame = model.initial_state(2), torch.randn(2, 3, 8, 8)
    with pytest.raises(ValueError, match=r"step expects one frame \[B, C, H, W\], got \[4, 2, 3, 8, 8\]"):
        model.step(torch.randn(4, 2, 3, 8, 8), state)
    with pytest.raises(ValueError, match=r"The state is for 2 samples of 8×8, got 1 of 8×8"):
        model.step(frame[:1], state)
    with pytest.raises(ValueError, match=r"NaN"):
        model.step(frame * float("nan"), state)
    with pytest.raises(ValueError, match=r"eval mode"):
        model.train().step(frame, state)


def test_a_stream_of_the_wrong_size_is_named() -> None:
    model = sf.create_model("spikformer_tiny_digits", image_size=None).eval()
    with pytest.raises(ValueError, match=r"The state is for 2 samples of 8×8, got 2 of 4×4"):
        model.step(torch.randn(2, 1, 4, 4), model.initial_state(2, image_size=(8, 8)))
