"""The `spikformer` command: one file a verb, each loaded only when it is called.

Exit codes: 0 done, 1 failed, 2 wrong use. A user's mistake is answered by one sentence, never by a traceback.
"""

from __future__ import annotations

import sys
from importlib import import_module

VERBS = {
    "models": "List every model, with its size and the paper's figures",
    "data": "Look at a data set, or check every file of it",
    "train": "Train a model by a recipe; on embedded digits by default",
    "ablate": "Train variants side by side with several seeds, beside the paper's",
    "evaluate": "Measure trained weights: accuracy by class and time step, confusion",
    "predict": "Say what pictures or recordings show",
    "energy": "Count what an inference costs, by every convention, layer by layer",
    "firing": "Measure how often neurons fire, and what layers read",
    "attention": "Draw what a network looks at",
    "figure": "Draw surrogates, curves, products of attention, rasters, events",
    "report": "Write one page about a run: accuracy, firing, energy, attention",
    "import": "Convert weights of the authors' code",
    "compile": "Turn trained weights into an engine that runs on spikes, without PyTorch",
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
        print(f"spikformer: there is no verb {verb!r}; choose from {', '.join(VERBS)}.", file=sys.stderr)
        return 2
    return _run(verb, rest)


def _run(verb: str, arguments: list[str]) -> int:
    import tyro

    module = import_module(f"spikformer.cli.{_MODULES.get(verb, verb)}")
    try:
        if hasattr(module, "parse"):
            return module.run(module.parse(arguments))
        options = tyro.cli(
            module.Options, prog=f"spikformer {verb}", description=module.__doc__, args=arguments, use_underscores=False
        )
        return module.run(options)
    except SystemExit as stop:  # tyro has shown its help, or what was wrong
        return stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        print(f"spikformer {verb}: interrupted.", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever was reading has seen enough
        sys.stdout = None
        return 1
    except (ValueError, *_MISTAKEN_PATHS) as error:
        print(f"spikformer {verb}: {_sentence(error)}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"spikformer {verb}: {_sentence(error)}", file=sys.stderr)
        return 1
    except MemoryError:
        print(f"spikformer {verb}: there is not enough memory; try a smaller --batch-size.", file=sys.stderr)
        return 1
    except ImportError as error:
        if error.name != "spikformer._native":
            raise
        print(f"spikformer {verb}: {error}", file=sys.stderr)
        return 1


def _sentence(error: Exception) -> str:
    """The system's own errors as "what: which file"; ours are sentences already."""
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
