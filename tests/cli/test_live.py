"""Signals that ask a run to stop."""

import os
import signal

import pytest

from spikformer.cli.live import stop_on_signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_each_asks_to_stop_and_a_second_one_is_as_before(number: signal.Signals) -> None:
    seen = []
    before = signal.signal(number, lambda *_: seen.append(number))
    try:
        with stop_on_signal() as stop:
            assert not stop()
            os.kill(os.getpid(), number)
            assert stop()
            assert not seen
            os.kill(os.getpid(), number)
            assert seen == [number]
        os.kill(os.getpid(), number)
        assert seen == [number] * 2
    finally:
        signal.signal(number, before)


def test_a_run_under_nohup_outlives_its_terminal() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signal() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)
