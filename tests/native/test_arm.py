"""ARM on an emulated processor: whole programs, in C and in Python, have the bits of this machine's scalar engine."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.native.cases import PROBED, RANDOM, REPOSITORY, assert_answers, assert_probes, make, write_case

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


@pytest.mark.skipif(
    not (REPOSITORY / "build/arm/python").exists(), reason="there is no Python for ARM; `make arm-wheel` fetches it"
)
@pytest.mark.parametrize("name", PROBED)
def test_an_installed_wheel(name: str, tmp_path: Path) -> None:
    """Answers, streams, neurons and interventions, without torch."""
    case, output = write_case(name, tmp_path), tmp_path / "output"
    command = [make("build/arm/python"), Path(__file__).with_name("run_engine.py")]
    for mode in ("events", "dense"):
        run = subprocess.run([*command, *case.arguments(mode, output), "neon"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert output.read_bytes() == case.expected(mode) + case.probed(mode), mode
