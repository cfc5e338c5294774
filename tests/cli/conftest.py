"""The command as users run it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).with_name("spikformer")


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command with these arguments in a process, and expect an exit code and no traceback."""

    def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        words = [COMMAND, *map(str, arguments)]
        result = subprocess.run(words, capture_output=True, text=True, check=False, timeout=300)
        assert result.returncode == code, result.stdout + result.stderr
        assert "Traceback" not in result.stderr
        return result

    return run
