"""Downloads from a real server on this machine: whole files or none, and an error message for everything else."""

import errno
import gc
import hashlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pooch
import pytest
from tests.mistakes import file_error, mistake

from spikformer.data.addresses import SOURCES, RemoteFile, Source
from spikformer.data.download import download, how_to_get
from spikformer.io import umask

PAGE = "https://example.org/toy"
CONTENTS = {"images.gz": bytes(range(256)) * 2000, "labels.gz": b"one two three"}


class Server(ThreadingHTTPServer):
    """Serves CONTENTS; paths that start with a trouble's name get into it. What was asked for is in `requests`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[str] = []
        self.seen: list[set[str]] = []  # the files in `watched` in mid-transfer
        self.watched: Path | None = None
        self.release = threading.Event()

    def address(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        *trouble, name = self.path.strip("/").split("/")
        content = CONTENTS[name]
        match trouble:
            case ["gone"]:
                self.send_error(404)
                return
            case ["silent"]:
                self.server.release.wait(10)
                return
            case ["empty"]:  # as figshare's firewall does
                self.send_response(202)
                self.end_headers()
                return
            case ["moved"]:
                self.send_response(302)
                self.send_header("Location", f"/{name}")
                self.end_headers()
                return
        self.send_response(200)
        if trouble not in (["endless"], ["flood"]):
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if trouble == ["wrong"]:
            content = content[::-1]
        self.wfile.write(content[: len(content) // 2])
        if self.server.watched:
            self.server.seen.append(set(os.listdir(self.server.watched)))
        match trouble:
            case ["cut"]:
                return
            case ["stalled"]:
                self.server.release.wait(10)
                return
            case ["interrupted"]:
                self.server.release.wait(0.5)  # until the client has what was sent, and waits
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # Ctrl-C
                self.server.release.wait(10)
                return
        self.wfile.write(content[len(content) // 2 :])
        with suppress(OSError):  # the client hangs up
            while trouble == ["flood"]:
                self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _direct_and_closed(monkeypatch) -> Iterator[None]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield
    gc.collect()  # a connection left open warns here, not in some later test


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


def toy(*paths: str, server: Server, algorithm: str = "sha256") -> Source:
    """A set of the files at these paths; one that starts with a trouble is served with it."""
    files = []
    for path in paths:
        name = path.rsplit("/", 1)[-1]
        checksum = f"{algorithm}:{hashlib.new(algorithm, CONTENTS[name]).hexdigest()}"
        files.append(RemoteFile(name, (server.address(path),), checksum, len(CONTENTS[name])))
    return Source("toy", PAGE, tuple(files))


@contextmanager
def fails(error: type[Exception], folder: Path, *shown: object) -> Iterator[None]:
    """The block raises an error that shows these values, and afterwards no file is in the folder."""
    with mistake(error, *shown):
        yield
    assert not folder.is_dir() or os.listdir(folder) == []


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
@pytest.mark.parametrize("progress", [True, False])
def test_missing_files_are_fetched_whole_and_quietly(algorithm, progress, server, tmp_path, capfd) -> None:
    folder = tmp_path / "new" / "toy"
    level = pooch.get_logger().level
    source = toy("images.gz", "moved/labels.gz", server=server, algorithm=algorithm)
    paths = download(source, folder, progress=progress)
    assert paths == [folder / "images.gz", folder / "labels.gz"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == CONTENTS
    assert all(path.stat().st_mode & 0o777 == 0o666 & ~umask() for path in paths)
    assert capfd.readouterr() == ("", "")  # no terminal here, so no bar either
    assert pooch.get_logger().level == level


def test_the_bar_is_drawn_on_a_terminal(server, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    download(toy("images.gz", "endless/labels.gz", server=server), tmp_path)
    output, drawn = capsys.readouterr()
    assert output == ""
    assert "labels.gz (2 of 2)" in drawn
    download(toy("images.gz", server=server), tmp_path / "again", progress=False)
    assert capsys.readouterr() == ("", "")


def test_what_is_there_and_right_is_kept_without_a_request(server, tmp_path) -> None:
    (tmp_path / "images.gz").write_bytes(CONTENTS["images.gz"])
    before = (tmp_path / "images.gz").stat().st_mtime_ns
    source = toy("images.gz", "labels.gz", server=server)
    assert len(download(source, tmp_path)) == 2
    assert server.requests == ["/labels.gz"]
    assert len(download(source, tmp_path)) == 2
    assert server.requests == ["/labels.gz"]
    assert (tmp_path / "images.gz").stat().st_mtime_ns == before


def test_what_is_there_and_different_is_left_alone(server, tmp_path) -> None:
    path = tmp_path / "labels.gz"
    path.write_bytes(b"mine")
    with file_error(path, "foreign", "--data"):
        download(toy("labels.gz", server=server), tmp_path)
    assert path.read_bytes() == b"mine"
    assert server.requests == []


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("gone", "answered 404 Not Found"),
        ("cut", "broke off"),
        ("wrong", "sent is not the file"),
        ("empty", "sent is not the file"),
        ("flood", "sent is not the file"),
        ("silent", "did not answer in time"),
        ("stalled", "did not answer in time"),
    ],
)
def test_a_server_in_trouble(trouble: str, reason: str, server, tmp_path) -> None:
    host = f"127.0.0.1:{server.server_port}"
    parts = ("toy", host, reason, "images.gz", PAGE, tmp_path)
    with fails(ConnectionError, tmp_path, *parts, "--data"):
        download(toy(f"{trouble}/images.gz", server=server), tmp_path, timeout_seconds=0.3)
    assert server.requests[0] == f"/{trouble}/images.gz"


def test_no_connection(server, tmp_path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/images.gz"
        source = Source("toy", PAGE, (RemoteFile("images.gz", (address,), "md5:" + "0" * 32, 1),))
        with fails(ConnectionError, tmp_path, urlsplit(address).netloc):
            download(source, tmp_path)
    assert server.requests == []


def test_a_mirror_steps_in(server, tmp_path) -> None:
    whole = toy("images.gz", server=server).files[0]
    troubles = tuple(server.address(f"{trouble}/images.gz") for trouble in ("gone", "wrong"))
    source = Source("toy", PAGE, (whole._replace(addresses=troubles + whole.addresses),))
    [path] = download(source, tmp_path)
    assert path.read_bytes() == CONTENTS["images.gz"]
    assert len(server.requests) == 3
    path.unlink()
    with fails(ConnectionError, tmp_path, "404 Not Found", "127.0.0.1"):
        download(Source("toy", PAGE, (whole._replace(addresses=troubles),)), tmp_path)


def test_only_what_is_still_missing_is_asked_of_the_user(server, tmp_path) -> None:
    with mistake(ConnectionError, "labels.gz", PAGE, tmp_path):
        download(toy("images.gz", "gone/labels.gz", server=server), tmp_path)
    assert os.listdir(tmp_path) == ["images.gz"]


def test_no_partial_file_ever_has_the_final_name(server, tmp_path) -> None:
    """Were the process killed in mid-transfer, this is what it would leave."""
    server.watched = tmp_path
    download(toy("images.gz", server=server), tmp_path)
    [names] = server.seen
    assert len(names) == 1
    assert "images.gz" not in names


def test_an_interrupted_transfer_leaves_nothing(server, tmp_path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what runs behind them ignore Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt):
            download(toy("interrupted/images.gz", server=server), tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be(server, tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    folder = tmp_path / "file" / "toy"
    with fails(OSError, folder, folder, os.strerror(errno.ENOTDIR), "SPIKFORMER_CACHE"):
        download(toy("images.gz", server=server), folder)
    assert server.requests == []


def test_a_folder_that_cannot_be_made(server, tmp_path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "mnist"  # modes of folders prove nothing where tests run as root
    with fails(OSError, folder, folder, os.strerror(errno.ENOTDIR)):
        download(toy("images.gz", server=server), folder)
    assert server.requests == []


def test_a_disk_that_is_too_small(server, tmp_path) -> None:
    large = toy("images.gz", server=server).files[0]._replace(size_bytes=10**18)
    with fails(OSError, tmp_path, "1000000000.00 GB"):
        download(Source("toy", PAGE, (large,)), tmp_path)
    assert server.requests == []


def test_a_write_that_fails_midway(server, tmp_path, full_disk) -> None:
    with fails(OSError, tmp_path, tmp_path, os.strerror(errno.EFBIG)), full_disk(100_000):
        download(toy("images.gz", server=server), tmp_path)
    assert server.requests == ["/images.gz"]


@pytest.mark.parametrize("name", SOURCES)
def test_every_set_can_be_got_by_hand(name: str, tmp_path: Path) -> None:
    message = how_to_get(SOURCES[name], tmp_path)
    assert message.startswith(f"For {name}, get {SOURCES[name].file_names[0]}")
    for part in (*SOURCES[name].file_names, SOURCES[name].page, f" into {tmp_path}, or give the folder"):
        assert part in message
    if SOURCES[name].by_hand:
        with fails(FileNotFoundError, tmp_path, name):
            download(SOURCES[name], tmp_path)
