"""Keep freed memory in the process, so that the next large tensor costs no page faults.

PyTorch asks the C library for every large tensor anew, and glibc hands each one back to the kernel when it is freed.
The kernel then zeroes the same pages again, step after step, which on a CPU can take as long as the arithmetic.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_M_TRIM_THRESHOLD = -1
_M_MMAP_MAX = -4


def keep_freed_memory() -> bool:
    """Tell glibc to reuse large blocks instead of returning them; False where there is no glibc.

    For a process of one's own: the memory it once needed stays its own until it ends.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_MAX, 0)) and bool(mallopt(_M_TRIM_THRESHOLD, 2**31 - 1))


def resident_bytes() -> int:
    """Memory that this process holds at present; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
