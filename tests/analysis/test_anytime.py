"""Who leaves when, and which confidence is chosen: by hand, on a few samples."""

import numpy as np
import pytest
from tests.mistakes import field_error

from spikformer.analysis.anytime import CONFIDENCES, ExitPoint, StepAnswers, choose_confidence

pytestmark = pytest.mark.core


def answers(shares: list[list[float]], correct: list[list[int]]) -> StepAnswers:
    return StepAnswers(np.array(shares), np.array(correct, bool))


FOUR = answers(
    shares=[[0.9, 0.6, 0.5, 0.3], [0.5, 0.7, 0.6, 0.3], [0.9, 0.9, 0.9, 0.4]],
    correct=[[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 0]],
)


def test_a_sample_leaves_at_its_first_sure_step() -> None:
    assert FOUR.num_steps(0.6).tolist() == [1, 1, 2, 3]
    assert FOUR.at(0.6) == ExitPoint(0.6, 0.25, 1.75, (0.5, 0.25, 0.25))
    assert FOUR.at(0.7) == ExitPoint(0.7, 0.75, 2.25, (0.25, 0.25, 0.5))
    assert FOUR.at(0.95) == ExitPoint(0.95, 0.75, 3.0, (0.0, 0.0, 1.0))
    assert FOUR.at(None) == ExitPoint(None, 0.75, 3.0, (0.0, 0.0, 1.0))
    assert FOUR.at(0.1) == ExitPoint(0.1, 0.25, 1.0, (1.0, 0.0, 0.0))


def test_the_lowest_that_keeps_the_accuracy_and_the_highest_of_its_ties() -> None:
    assert choose_confidence(FOUR, 0.0) == 0.7, "0.601 to 0.7 are the same exits"
    assert choose_confidence(FOUR, 0.5) == 0.3, "a tie of one: 0.301 sends the last sample to the end"
    assert choose_confidence(FOUR, 0.0, (0.65, 0.68, 0.9)) == 0.68


def test_one_that_keeps_it_by_chance_is_not_chosen() -> None:
    """At 0.4 one error makes up for another; at 0.6 it does not."""
    some = answers(shares=[[0.5, 0.7], [0.9, 0.9]], correct=[[1, 0], [0, 1]])
    assert [some.at(each).accuracy for each in (0.4, 0.6, 0.8)] == [0.5, 0.0, 0.5]
    assert choose_confidence(some, 0.0) == CONFIDENCES[-1]
    assert choose_confidence(some, 0.5) == 0.5


def test_none_where_no_confidence_keeps_it() -> None:
    hasty = answers(shares=[[1.0, 1.0], [1.0, 1.0]], correct=[[0, 0], [1, 1]])
    assert choose_confidence(hasty, 0.002) is None


def test_tolerances_that_a_share_rounds() -> None:
    """97 of 100 instead of 100 is within 0.03, though 1 - 0.97 is more in floats."""
    correct = np.ones((2, 100), bool)
    correct[0, :3] = False
    sure = StepAnswers(np.ones((2, 100)), correct)
    assert choose_confidence(sure, 0.03) == CONFIDENCES[-1]
    assert choose_confidence(sure, 0.029) is None


@pytest.mark.parametrize("wrong", [-0.1, 1, float("nan")])
def test_wrong_tolerances(wrong: float) -> None:
    with field_error("tolerance"):
        choose_confidence(FOUR, wrong)
