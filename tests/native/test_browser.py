"""engine.js in Chromium: logits, spikes, membranes and interventions have the scalar engine's bits."""

import base64
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.browser import Browser, open_browser
from tests.native.cases import NAMES, RANDOM, REPOSITORY, assert_probed, write_case

_PAGE = """<!doctype html><title>engine.js</title><link rel="icon" href="data:,"><script type="module">
import { compileCore } from "./engine.js";
import { probe } from "./probes.mjs";

const fetched = async (name) => (await fetch(name)).arrayBuffer();

window.run = async (name, mode, ...sizes) => {
  const core = await compileCore(await fetched("engine.wasm"));
  const x = new Float32Array(await fetched(`${name}.x`));
  const { lines, parts } = probe(core, new Uint8Array(await fetched(`${name}.engine`)), x, mode, ...sizes);
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return [lines, btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))];
};
</script>"""


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text(_PAGE)
    for name in ("engine.wasm", "engine.js", "memory.js", "structs.js"):
        shutil.copy(REPOSITORY / "src/spikformer/page" / name, folder)
    shutil.copy(Path(__file__).with_name("probes.mjs"), folder)
    return folder


@pytest.fixture(scope="module")
def browser(folder: Path) -> Iterator[Browser]:
    """With our page open: modules are not read from disk, so a server of our own has them."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=folder))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with open_browser() as browser:
            browser.open(f"http://127.0.0.1:{server.server_port}/index.html")
            assert not browser.complaints
            yield browser
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("name", [*NAMES, *RANDOM])
def test_answers_and_neurons_are_the_scalar_engine_s(name: str, folder: Path, browser: Browser) -> None:
    case = write_case(name, folder)
    for mode in ("events", "dense") if name in RANDOM else ("events",):
        numbers = map(int, case.arguments(mode, folder)[3:])
        lines, content = browser.run("return window.run(...arguments)", name, *numbers)
        assert_probed(case, mode, lines, base64.b64decode(content), answers=True)
