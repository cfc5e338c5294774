"""Coverage-guided fuzzing of every reader: python -m fuzz.run SECONDS [TARGET …], from the project's folder.

Each target runs in a process of its own, with limits on memory and time for every case. The corpus is kept in
build/fuzz/corpus/<target>, so that the next run starts where this one ended; finds are put into build/fuzz/finds. Once
a find is mended, add it to tests/fuzz/finds.
"""

from __future__ import annotations

import logging
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

FOLDER = Path("build/fuzz")
FINDS = FOLDER / "finds"
MEGABYTES = 512  # that a case may take
SECONDS = 20  # and how long
LONGEST = 1 << 18


def fuzz(name: str, options: list[str]) -> None:
    """In this process, to its end."""
    import atheris

    with atheris.instrument_imports(include=["spikformer", "tarfile", "zipfile", "pickletools"]):
        from fuzz.targets import TARGETS, run_once

    logging.disable()
    corpus, scratch = FOLDER / "corpus" / name, Path(tempfile.mkdtemp())
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds(scratch)):
        (corpus / f"seed_{number}").write_bytes(seed)

    def case(content: bytes) -> None:
        shutil.rmtree(scratch)
        scratch.mkdir()
        try:
            run_once(name, content, scratch)
        except Exception as error:  # kept, one for each place, and the search continues
            last = traceback.extract_tb(error.__traceback__)[-1]
            find = FINDS / f"{name}-{type(error).__name__}_{Path(last.filename).stem}_{last.lineno}"
            if not find.exists():
                find.write_bytes(content)
                traceback.print_exc()

    case((corpus / "seed_0").read_bytes())  # what is imported late is not the case's own memory
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEGABYTES * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    atheris.Setup([sys.argv[0], *options, str(corpus)], case)
    atheris.Fuzz()


def main(seconds: int, names: list[str]) -> int:
    from fuzz.targets import TARGETS

    if unknown := set(names) - set(TARGETS):
        sys.exit(f"There is no target {', '.join(sorted(unknown))}; choose from {', '.join(TARGETS)}.")
    FINDS.mkdir(parents=True, exist_ok=True)
    failed = False
    for name in names or TARGETS:
        options = [f"-max_total_time={seconds}", f"-timeout={SECONDS}", f"-rss_limit_mb={4 * MEGABYTES}"]
        options += [f"-max_len={LONGEST}", f"-artifact_prefix={FINDS}/{name}-", "-print_final_stats=1"]
        words = [sys.executable, "-m", "fuzz.run", "--here", name, *options]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        (FOLDER / f"{name}.log").write_text(done.stdout)
        cases = re.findall(r"number_of_executed_units: (\d+)", done.stdout)
        coverage = re.findall(r"cov: (\d+)", done.stdout)
        found = len(list(FINDS.glob(f"{name}-*")))  # of earlier runs, too: move them to tests/fuzz/finds once mended
        failed |= found > 0 or done.returncode != 0
        note = f"{found} finds in {FINDS}" if found or not done.returncode else f"it failed, see {FOLDER}/{name}.log"
        print(
            f"{name:18} {cases[-1] if cases else '?':>9} cases  {coverage[-1] if coverage else '?':>6} edges  {note}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    if sys.argv[1] == "--here":
        fuzz(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
