"""Drives Debian's chromium over two pipes, by its DevTools protocol: no package is needed for it."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from pathlib import Path
from typing import Any

import pytest

PATH = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = pytest.mark.skipif(PATH is None, reason="there is no chromium on this machine, so no page can be opened")
SECONDS = 90  # machines that test are busy


class Page:
    """One page of a browser."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing, self._number, self._rest = reading, writing, 0, b""
        self._session: str | None = None
        self.errors: list[str] = []
        """What was thrown, logged as an error, or refused by the policy."""
        self.requests: list[str] = []

    def begin(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        wanted: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            wanted["sessionId"] = self._session
        data = json.dumps(wanted).encode() + b"\0"
        while data:
            data = data[os.write(self._writing, data) :]
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._heard(answer)

    def evaluate(self, expression: str) -> Any:
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, expression: str) -> Any:
        """Waits until something is true."""
        ends = time.monotonic() + SECONDS
        while not (found := self.evaluate(expression)):
            assert time.monotonic() < ends, f"{expression}; {self.errors}; {self.evaluate('document.body.innerText')}"
            time.sleep(0.05)
        return found

    def show(
        self, address: str, *, width: int = 1280, height: int = 800, dark: bool = False, touch: bool = False
    ) -> None:
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        self.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.call("Page.navigate", url=address)
        self.until("typeof app === 'object' && Boolean(app.first && app.first.counted && app.first.summary)")
        self.settle()

    def settle(self) -> None:
        """Waits until all tiles are here and drawn."""
        self.until("!app.first.counted.waiting && !app.first.waiting && !byId('status').textContent.endsWith('…')")

    def key(self, key: str) -> None:
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def taken_errors(self) -> list[str]:
        """The errors since it was asked before."""
        found, self.errors = self.errors, []
        return found

    def taken_requests(self) -> list[str]:
        """The addresses asked for since it was asked before."""
        found, self.requests = self.requests, []
        return found

    def text(self, name: str = "panel") -> str:
        return str(self.evaluate(f"byId({name!r}).innerText"))

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._reading, 1 << 20)
            assert part, "the browser ended"
            self._rest += part
        found, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(found)
        return answer

    def _heard(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])


def _high_pipe() -> tuple[int, int]:
    """A pipe whose numbers are not 3 or 4."""
    low = os.pipe()
    found = fcntl(low[0], F_DUPFD_CLOEXEC, 20), fcntl(low[1], F_DUPFD_CLOEXEC, 20)
    for number in low:
        os.close(number)
    return found


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one page, in a folder of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        (their_reading, writing), (reading, their_writing) = _high_pipe(), _high_pipe()
        options = [
            *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-extensions"),
            *("--disable-dev-shm-usage", f"--user-data-dir={folder}"),
        ]
        moved = "import os, sys; os.dup2(%d, 3); os.dup2(%d, 4); os.execv(sys.argv[1], sys.argv[1:])"
        command = moved % (their_reading, their_writing)  # chromium reads 3 and writes 4
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-ISc", command, str(PATH), *options],
            pass_fds=(their_reading, their_writing),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(their_reading)
        os.close(their_writing)
        page = Page(reading, writing)
        try:
            page.begin()
            yield page
        finally:
            with suppress(OSError, AssertionError):
                page._session = None
                page.call("Browser.close")
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(reading)
            os.close(writing)
