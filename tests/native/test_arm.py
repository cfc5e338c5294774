"""The C library for ARM on an emulated processor: whole programs have the bits of the scalar engine of this machine."""

import shutil
from pathlib import Path

import pytest
from tests.native.cases import PROBED, RANDOM, assert_answers, assert_probes, make, write_case

_EMULATOR = "qemu-aarch64"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which(_EMULATOR) is None or shutil.which("aarch64-linux-gnu-g++") is None,
        reason="there is no compiler or emulator for ARM; `make arm` installs them",
    ),
]


@pytest.mark.parametrize("name", [*PROBED, "qkformer_4_384_cifar10", *RANDOM])
def test_whole_programs_in_neon(name: str, tmp_path: Path) -> None:
    command = [_EMULATOR, make("build/arm/run_engine")]
    assert_answers(write_case(name, tmp_path), command, ("events", "dense"), instructions=("neon",))


def test_the_scalar_set_has_the_same_bits_there(tmp_path: Path) -> None:
    command = [_EMULATOR, make("build/arm/run_engine")]
    assert_answers(write_case("every_op", tmp_path), command, instructions=("scalar",))


@pytest.mark.parametrize("name", PROBED)
def test_neurons_and_interventions(name: str, tmp_path: Path) -> None:
    assert_probes(write_case(name, tmp_path), [_EMULATOR, make("build/arm/probe_engine")], "events", answers=False)
