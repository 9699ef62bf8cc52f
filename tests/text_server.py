"""A server of texts that misbehaves on demand, and the download stage by hand with a registry that points to it."""

import contextlib
import hashlib
import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from smoke import change_params
from stages_by_hand import RunStage

TEXT = b"The tide went out, and the tide came in.\n" * 50
WAVES = b"Nobody counts the waves.\n" * 80
PAGE = b"<!DOCTYPE html><html><body>Please sign in</body></html>"


class TextServer(ThreadingHTTPServer):
    """Counts what is asked for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []

    def start(self) -> None:
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def register(self, folder: Path, faults: tuple[str, ...] = ("tide",)) -> None:
        """Add the corpora tide, with one URL for each fault, and waves to the registry of the project in ``folder``."""
        base, path = f"http://127.0.0.1:{self.server_port}", folder / "data" / "corpora.yaml"
        registry = YAML(typ="safe").load(path)
        for name, text, urls in (("tide", TEXT, faults), ("waves", WAVES, ("waves",))):
            registry["corpora"][name] = {
                "file": f"{name}.txt", "urls": [f"{base}/{url}" for url in urls], "bytes": len(text),
                "sha256": hashlib.sha256(text).hexdigest(), "line_separator": "", "licence": "CC0-1.0",
                "description": name,
            }  # fmt: skip
        with path.open("w") as file:
            YAML().dump(registry, file)


_SIMPLE: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "tide": (200, TEXT, {}),
    "waves": (200, WAVES, {}),
    "page": (200, PAGE, {}),
    "wrong": (200, TEXT[:-1] + b"?", {}),
    "missing": (404, b"", {}),
    "busy": (503, b"", {}),
}


class _Handler(BaseHTTPRequestHandler):
    """Answers by the path that is asked for."""

    server: TextServer

    def log_message(self, *arguments: object) -> None:
        pass

    def send(self, status: int, body: bytes, headers: dict[str, str], length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        fault = self.path.strip("/")
        self.server.asked.append(fault)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if fault in _SIMPLE:
                self.send(*_SIMPLE[fault])
            else:
                self.misbehave(fault)

    def misbehave(self, fault: str) -> None:
        match fault:
            case "reset":
                self.connection.shutdown(2)
            case "silent":
                time.sleep(1)
            case "truncated":
                self.send(200, TEXT[:100], {}, length=len(TEXT))


class Download:
    """The download stage by hand, in a folder of its own."""

    def __init__(self, run_stage: RunStage, folder: Path, server: TextServer) -> None:
        self.run_stage, self.folder, self.server = run_stage, folder, server

    def __call__(
        self, *faults: str, corpus: str = "tide", fallback: str | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        self.server.register(self.folder, faults or ("tide",))
        change_params(self.folder / "params.yaml", {"download.corpus": corpus, "download.fallback": fallback})
        return self.run_stage("download", **self.environment() | environment)

    def environment(self, cache: str = "cache") -> dict[str, str]:
        """Return variables that keep the machine's own sources out."""
        cache_folder = str(self.folder / cache)
        return {"XDG_CACHE_HOME": cache_folder, "SEQLM_DATA_DIR": "", "NO_PROXY": "*", "no_proxy": "*"}

    @property
    def path(self) -> Path:
        return self.folder / "data/raw/corpus.txt"

    @property
    def text(self) -> bytes:
        return self.path.read_bytes()

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "reports/download/summary.json").read_text())
        return found

    def leftovers(self) -> list[str]:
        found = [path for root in ("data/raw", "cache") for path in (self.folder / root).rglob("*") if path.is_file()]
        return sorted(path.name for path in found if path.name not in ("corpus.txt", "tide.txt"))
