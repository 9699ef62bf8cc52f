"""Headless Firefox, driven through its Marionette protocol."""

import json
import os
import shutil
import socket
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from workspace import wait_until

FIREFOX = shutil.which("firefox") or shutil.which("firefox-esr")


class Firefox(AbstractContextManager["Firefox"]):
    """One page in a Firefox with a profile of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "user.js").write_text('user_pref("marionette.port", 0);\n')  # any that is free
        command = [str(FIREFOX), "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
        variables = os.environ | {"HOME": str(folder)}
        self._process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        port = folder / "MarionetteActivePort"
        wait_until(lambda: port.exists() and port.read_text() != "")
        self._socket = socket.create_connection(("127.0.0.1", int(port.read_text())))
        self._answers = self._socket.makefile("rb")
        self._receive()
        self.call("WebDriver:NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "none"}})

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._answers.close()
        self._socket.close()

    def call(self, command: str, **params: Any) -> Any:
        message = json.dumps([0, 1, command, params]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, _, error, result = self._receive()
        assert error is None, error
        return result

    def _receive(self) -> Any:
        length = b""
        while (digit := self._answers.read(1)) != b":":
            length += digit
        return json.loads(self._answers.read(int(length)))

    def open(self, path: Path) -> None:
        self.call("WebDriver:Navigate", url=path.resolve().as_uri())

    def run(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, which sees the page's elements."""
        script = f"return {expression}"
        return self.call("WebDriver:ExecuteScript", script=script, args=[])["value"]
