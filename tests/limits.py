"""Run code in a child process with a limit on memory and time, as a reader that meets a hostile file needs it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

_PRELUDE = """
import resource, sys

def limit(megabytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
"""


@dataclass(frozen=True)
class Outcome:
    """How the child ended."""

    exit_code: int
    output: str
    errors: str


def run_limited(imports: str, code: str, *arguments: object, megabytes: int, seconds: float = 60) -> Outcome:
    """Run `imports` freely, then `code` with `megabytes` more address space; `arguments` are sys.argv[1:].

    A child that needs longer is killed, and raises subprocess.TimeoutExpired here.
    """
    script = "\n".join([_PRELUDE, imports, f"limit({megabytes})", code])
    words = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
