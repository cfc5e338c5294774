"""Who is measured by bench_engine.py: each in a process of its own, in turns, so that all see the same machine."""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spikformer.runs.bench import speed_of, time_calls

BATCH_SIZES = (1, 32)
ENGINES = {"engine": "auto", "engine, events only": "events"}  # and their modes
CONTENDERS = ("eager", "torch.compile", "onnxruntime", *ENGINES)
ROUNDS = 5


def commands_of(tree: Path, python: Path, names: Sequence[str], arguments: Sequence[str]) -> dict[str, list[str]]:
    """What starts each contender in a tree, with the packages of that tree's own Python."""
    script = tree / "benchmarks" / "bench_engine.py"
    return {name: [str(python), str(script), *arguments, "--part", name] for name in names}


def commands_before(tree: Path, arguments: Sequence[str]) -> dict[str, list[str]]:
    """The engines of another commit: a tree of it with an environment of its own in .venv."""
    python = tree / ".venv" / "bin" / "python"
    if not python.is_file():
        sys.exit(f"--before expects a tree with its own .venv, but there is no {python}; run `make install` in it.")
    commands = commands_of(tree.absolute(), python.absolute(), list(ENGINES), arguments)
    return {f"{name}, before": command for name, command in commands.items()}


def measure_in_turns(commands: Mapping[str, Sequence[str]], seconds: float) -> list[dict[str, Any]]:
    """Latencies at each batch size, `seconds` for each in all, and the peak memory of each process."""
    processes = {}
    found: dict[str, dict[str, Any]] = {}
    for name, words in commands.items():  # one is ready before the next begins to compile
        processes[name] = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        found[name] = {"name": name} | _read_report(processes[name])
    latencies: dict[str, dict[str, list[float]]] = {name: {str(size): [] for size in BATCH_SIZES} for name in commands}
    for _ in range(ROUNDS):
        for name, process in processes.items():
            process.stdin.write(f"{seconds / ROUNDS}\n")
            process.stdin.flush()
            reported = _read_report(process)
            found[name]["peak_gb"] = reported["peak_gb"]
            for size, times in reported["latencies"].items():
                latencies[name][size] += times
    for name, process in processes.items():
        process.communicate()  # the end of its input is the end of it
        found[name]["speeds"] = {size: vars(speed_of(int(size), times)) for size, times in latencies[name].items()}
    return list(found.values())


def _read_report(process: subprocess.Popen[str]) -> dict[str, Any]:
    line = process.stdout.readline()
    if not line:
        sys.exit("A contender ended before its time; what it said stands above.")
    return json.loads(line)


def serve(name: str, weights: Path, data: Path | None, threads: int) -> None:
    """A contender's process: says when it is ready, then measures for as many seconds as each line asks for."""
    import torch

    model, images = load_images(weights, data, max(BATCH_SIZES))
    torch.set_num_threads(threads)
    begin = time.perf_counter()
    answer = prepare_contender(name, model, images, threads)
    for size in BATCH_SIZES:
        answer(images[:size])
    print(json.dumps({"ready_seconds": time.perf_counter() - begin}), flush=True)
    for line in sys.stdin:
        times = {size: time_calls(partial(answer, images[:size]), float(line), fewest=1) for size in BATCH_SIZES}
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # from KiB, nearly
        print(json.dumps({"latencies": times, "peak_gb": peak}), flush=True)


def load_images(weights: Path, data: Path | None, count: int) -> Any:
    from spikformer.runs.measure import prepared_batches
    from spikformer.runs.trained import load_trained, open_data

    model = load_trained(weights)
    return model, next(prepared_batches(open_data(model, data), "test", count, count))


def prepare_contender(name: str, model: Any, images: Any, threads: int) -> Callable[[Any], Any]:
    """What answers a batch of images; not yet warm."""
    import torch

    import spikformer as sf
    from spikformer.runs.process import keep_freed_memory

    if name in ENGINES:
        engine = sf.compile_engine(model, threads)
        engine.mode = ENGINES[name]
        return engine
    if name == "onnxruntime":
        return export_to_onnxruntime(model, images, threads)
    keep_freed_memory()
    compiled = torch.compile(model) if name == "torch.compile" else model

    def answer(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return compiled(x)

    return answer


def export_to_onnxruntime(model: Any, images: Any, threads: int) -> Callable[[Any], Any]:
    """One session for each batch size: shapes that are known leave it the most to gain."""
    import onnxruntime
    import torch

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it asks for torchvision, and talks
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    sessions = {}
    for size in BATCH_SIZES:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
            path = Path(folder) / "model.onnx"
            torch.onnx.export(model, (images[:size],), dynamo=True).save(path)
            sessions[size] = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def answer(x: torch.Tensor) -> Any:
        session = sessions[len(x)]
        return session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]

    return answer
