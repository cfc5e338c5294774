"""Run code in a child process with a limit on memory and time, as a reader that meets a hostile file needs it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

_HANGS = 600  # seconds on the wall
_PRELUDE = """
import math, resource, sys

def limit(megabytes, seconds):
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * resource.getpagesize() + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = math.ceil(used.ru_utime + used.ru_stime + seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (end, end))
"""


@dataclass(frozen=True)
class Outcome:
    """How the child ended."""

    exit_code: int
    output: str
    errors: str


def run_limited(imports: str, code: str, *arguments: object, megabytes: int, seconds: float = 60) -> Outcome:
    """Run `imports` freely, then `code` with `megabytes` more address space; `arguments` are sys.argv[1:].

    `seconds` are of a processor, so that a busy machine changes nothing; a child that needs more is killed, and its
    exit code is negative. One that waits for ever raises subprocess.TimeoutExpired here.
    """
    script = "\n".join([_PRELUDE, imports, f"limit({megabytes}, {seconds})", code])
    words = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_HANGS, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
