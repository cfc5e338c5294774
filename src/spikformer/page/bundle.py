"""One script out of the page's modules, without a bundler: every module becomes a function that is called once.

A page that is opened from disk cannot import its neighbours, and its policy allows one script, by its hash. Modules
keep to what is turned here: `import { a, b as c } from "./x.js";` and `export` before a function, class or const.
"""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"""^import\s*\{([^}]*)\}\s*from\s*"\./([\w-]+)\.js";[ \t]*$""", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+((?:async\s+)?function\*?|class|const)\s+(\w+)", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)
_TYPES = re.compile(r"^export \{\};\n", re.MULTILINE)
"""The line of a file that holds types alone, which makes it a module for the type checker."""


def bundle(entry: str) -> str:
    """The text of a module script that runs `entry` after what it imports, each module once."""
    done: dict[str, str] = {}
    _add(entry, done, ())
    return '"use strict";\n' + "".join(done.values())


def _add(name: str, done: dict[str, str], above: tuple[str, ...]) -> None:
    if name in done:
        return
    if name in above:
        raise ValueError(f"The page's modules import each other in a circle: {' → '.join((*above, name))}.")
    source = _TYPES.sub("", (FOLDER / f"{name}.js").read_text(encoding="utf-8"))
    for each in _IMPORT.finditer(source):
        _add(each[2], done, (*above, name))
    exported = [each[2] for each in _EXPORT.finditer(source)]
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(_destructured, source))
    if left := _LEFT.search(body):
        raise ValueError(f"{name}.js: cannot bundle {left[0]!r}; write it as the other modules do.")
    done[name] = f"const ${name} = (() => {{\n{body.strip()}\nreturn {{ {', '.join(exported)} }};\n}})();\n"


def _destructured(found: re.Match[str]) -> str:
    names = (re.sub(r"\s+as\s+", ": ", part.strip()) for part in found[1].split(",") if part.strip())
    return f"const {{ {', '.join(names)} }} = ${found[2]};"
