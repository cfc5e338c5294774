"""The `spikformer` command: one file a verb, each loaded only when it is called.

Exit codes: 0 done, 1 failed, 2 wrong use. A user's mistake gets a short error message, never a traceback.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module

VERBS = {
    "models": "List every model, with its size and the paper's figures",
    "data": "Look at a data set, or check every file of it",
    "train": "Train a model by a recipe; on embedded digits by default",
    "ablate": "Train variants side by side with several seeds, beside the paper's",
    "evaluate": "Measure trained weights: accuracy by class and time step, confusion",
    "predict": "Say what pictures or recordings show",
    "anytime": "Choose how sure an answer must be to end early, and measure what that saves",
    "energy": "Count what an inference costs, by every convention, layer by layer",
    "firing": "Measure how often neurons fire, and what layers read",
    "attention": "Draw what a network looks at",
    "figure": "Draw surrogates, curves, products of attention, rasters, events",
    "report": "Write one page about a run: accuracy, firing, energy, attention",
    "import": "Convert weights of the authors' code",
    "compile": "Turn trained weights into an engine that runs on spikes, without PyTorch",
    "page": "Write a browser page in which a network runs, and can be watched and changed",
    "bench": "Measure how fast weights or an engine answer on this machine",
    "verify": "Check this installation against the paper and the authors' code",
}

_MODULES = {"compile": "compile_engine", "import": "import_official"}
_MISTAKEN_PATHS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def main(arguments: list[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_help())
        return 0
    if arguments[0] in ("-V", "--version"):
        from spikformer import __version__

        print(f"spikformer {__version__}")
        return 0
    verb, *rest = arguments
    if verb not in VERBS:
        from spikformer.errors import did_you_mean

        hint = did_you_mean(verb, VERBS, f"choose from {', '.join(VERBS)}.")
        print(f"spikformer: there is no verb {verb!r}; {hint}", file=sys.stderr)
        return 2
    return _run(verb, rest)


def _run(verb: str, arguments: list[str]) -> int:
    _escape_in_streams_and_logs()
    try:
        module = import_module(f"spikformer.cli.{_MODULES.get(verb, verb)}")
        if hasattr(module, "parse"):
            return module.run(module.parse(arguments))
        from spikformer.cli.console import parse_options

        return module.run(parse_options(module.Options, verb, module.__doc__, arguments))
    except SystemExit as stop:  # tyro has shown its help, or what was wrong
        return stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        return _fail(verb, "interrupted.", 1)
    except BrokenPipeError:  # whoever was reading has seen enough
        sys.stdout = None
        return 1
    except (ValueError, *_MISTAKEN_PATHS) as error:
        return _fail(verb, _message(error), 2)
    except OSError as error:
        return _fail(verb, _message(error), 1)
    except MemoryError:
        return _fail(verb, "there is not enough memory; try a smaller --batch-size.", 1)
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "torch":
            return _fail(verb, "this needs PyTorch, which is not installed; `pip install torch` installs it.", 1)
        if error.name not in ("spikformer._native", "huggingface_hub"):
            raise
        return _fail(verb, str(error), 1)


def _fail(verb: str, message: str, code: int) -> int:
    from spikformer.cli.console import cut_middle, one_line

    print(f"spikformer {verb}: {cut_middle(one_line(message))}", file=sys.stderr)
    return code


def _escape_in_streams_and_logs() -> None:
    """A letter that the terminal's encoding lacks becomes an escape, as do control characters in log messages."""
    import logging

    from spikformer.cli.console import escaped, one_line

    class Printable(logging.Formatter):
        def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
            return one_line(super().formatMessage(record))

        def format(self, record: logging.LogRecord) -> str:
            return escaped(super().format(record))

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Printable())


def _message(error: Exception) -> str:
    """The system's own errors as "what: which file"; ours need nothing added."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.strerror}: {error.filename}"
    return str(error)


def _help() -> str:
    width = max(len(verb) for verb in VERBS)
    lines = [
        "Spiking vision transformers, faithful to the paper.",
        "",
        "usage: spikformer VERB [options]",
        "",
        *(f"  {verb:<{width}}  {summary}" for verb, summary in VERBS.items()),
        "",
        "spikformer VERB --help explains a verb, with an example. Every verb takes --json.",
    ]
    return "\n".join(lines)
