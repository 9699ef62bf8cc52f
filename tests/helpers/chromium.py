"""Headless Chromium, driven through the DevTools protocol over a pipe."""

import fcntl
import itertools
import json
import os
import shutil
import subprocess
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
]  # fmt: skip


class Browser(AbstractContextManager["Browser"]):
    """One page in a browser of its own, which records requests, errors and violations of the page's policy."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 900) -> None:
        from_page, child_out = os.pipe()
        child_in, to_page = os.pipe()
        # Numbers that nothing else has, above 3 and 4.
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (child_in, child_out)]

        def connect() -> None:  # Chromium reads from 3 and writes to 4
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", "about:blank"]
        self._process = subprocess.Popen(
            command, preexec_fn=connect, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for fd in (child_in, child_out, *high):
            os.close(fd)
        self._in, self._out = os.fdopen(to_page, "wb"), os.fdopen(from_page, "rb")
        self._numbers, self._rest, self.events = itertools.count(1), b"", list[dict[str, Any]]()
        self._session: str | None = None
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._in.close()
        self._out.close()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._in.write(json.dumps(message).encode() + b"\0")
        self._in.flush()
        while (answer := self._receive()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._out.fileno(), 1 << 20)
            assert block, "Chromium has ended"
            self._rest += block
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path, state: str = "") -> None:
        """Open a page, with a state such as ``#part``, and wait until its scripts have run."""
        self.call("Page.navigate", url=path.resolve().as_uri() + state)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def wait(self, condition: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            assert time.monotonic() < deadline, condition
            time.sleep(0.05)

    def run(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript, awaited if it is a promise."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def press(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {}
        code = {"windowsVirtualKeyCode": 39} if key == "ArrowRight" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for."""
        self.run("1")
        sent = (event["params"] for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [one["request"]["url"] for one in sent]

    def problems(self) -> list[str]:
        """Return errors of the page's scripts, and what its policy blocked."""
        self.run("1")
        kinds = {"Runtime.exceptionThrown", "Log.entryAdded"}
        return [json.dumps(event["params"]) for event in self.events if event["method"] in kinds]
