"""A hub on this machine: as much of its protocol as making a repository, a commit and a download need."""

import json
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


@dataclass
class Hub:
    """Repositories by name, each with its commits in order: a dictionary of files by the commit's number."""

    repositories: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """Every request, as "GET /owner/name/…"."""
    url: str = ""

    def commit(self, repository: str, files: dict[str, bytes]) -> str:
        commits = self.repositories.setdefault(repository, {})
        before = next(reversed(commits.values()), {})
        number = sha1(repr((len(commits), sorted(files))).encode()).hexdigest()
        commits[number] = before | files
        return number


@contextmanager
def served_hub() -> Iterator[Hub]:
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_HEAD(self) -> None:
        self._file()

    def do_GET(self) -> None:
        self._file()

    def _file(self) -> None:
        """/owner/name/resolve/REVISION/FILE."""
        self.hub.asked.append(f"{self.command} {self.path}")
        words = self.path.partition("?")[0].lstrip("/").split("/", 4)
        if len(words) < 5 or words[2] != "resolve":
            return self._answer(404, {})
        owner, name, _, revision, file = words
        commits = self.hub.repositories.get(f"{owner}/{name}")
        if commits is None:
            return self._answer(404, {"X-Error-Code": "RepoNotFound"})
        number = list(commits)[-1] if revision == "main" else revision
        if number not in commits:
            return self._answer(404, {"X-Error-Code": "RevisionNotFound"})
        content = commits[number].get(file)
        if content is None:
            return self._answer(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": number})
        etag = f'"{sha256(content).hexdigest()}"'
        return self._answer(200, {"X-Repo-Commit": number, "ETag": etag, "Accept-Ranges": "bytes"}, content)

    def do_POST(self) -> None:
        self.hub.asked.append(f"{self.command} {self.path}")
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Authorization") != "Bearer hf_mine":
            return self._answer(401, {"X-Error-Message": "Invalid token"})
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked.get('organization', 'owner')}/{asked['name']}"
            self.hub.repositories.setdefault(name, {})
            return self._json({"url": f"{self.hub.url}/{name}"})
        if self.path == "/api/validate-yaml":
            return self._json({"warnings": [], "errors": []})
        repository, verb = "/".join(self.path.split("/")[3:5]), self.path.split("/")[5]
        if verb == "preupload":
            files = [
                {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            return self._json({"files": files})
        lines = [json.loads(line) for line in body.splitlines()]
        added = {line["value"]["path"]: b64decode(line["value"]["content"]) for line in lines if line["key"] == "file"}
        number = self.hub.commit(repository, added)
        return self._json({"commitUrl": f"{self.hub.url}/{repository}/commit/{number}", "commitOid": number})

    def _json(self, value: Any) -> None:
        self._answer(200, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _answer(self, status: int, headers: dict[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""
