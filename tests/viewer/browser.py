"""A page in Debian's chromium, driven by Playwright, which needs no browser of its own for it."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PATH = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = (
    "there is no chromium on this machine, so no page can be opened"
    if PATH is None
    else "playwright is not installed, so no page can be opened"
    if find_spec("playwright") is None
    else ""
)
"""Why no page can be opened; empty: it can."""
NEEDED = pytest.mark.skipif(bool(MISSING), reason=MISSING)
_SECONDS = 90.0  # machines that test are busy


class Page:
    """One page of a browser."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._context: Any = None
        self._page: Any = None
        self.errors: list[str] = []
        """What was thrown, logged as an error, or refused by the policy."""
        self.requests: list[str] = []

    def open(
        self,
        address: str,
        *,
        width: int = 1280,
        height: int = 800,
        dark: bool = False,
        touch: bool = False,
        scripts: bool = True,
    ) -> None:
        """Opens a page in a new window; `scripts`: whether JavaScript is on."""
        if self._context is not None:
            self._context.close()
        self._context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            is_mobile=touch,
            java_script_enabled=scripts,
        )
        self._context.set_default_timeout(1000 * _SECONDS)
        page = self._page = self._context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(address)

    def show(self, address: str, **how: Any) -> None:
        """Opens the page of a trace, and waits until it is drawn."""
        self.open(address, **how)
        self.until("typeof app === 'object' && Boolean(app.first && app.first.counted && app.first.summary)")
        self.settle()

    def settle(self) -> None:
        """Waits until all tiles are here and drawn."""
        self.until("!app.first.counted.waiting && !app.first.waiting && !byId('status').textContent.endsWith('…')")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, awaited."""
        assert self._page is not None
        return self._page.evaluate(expression)

    def until(self, expression: str) -> None:
        """Waits until something is true."""
        ends = time.monotonic() + _SECONDS
        while not self.evaluate(expression):  # Playwright's own way of waiting is refused by the page's policy
            shown = self.evaluate("document.body.innerText")
            assert time.monotonic() < ends, f"{expression}; {self.errors}; {shown}"
            time.sleep(0.03)

    def key(self, key: str) -> None:
        assert self._page is not None
        self._page.keyboard.press(key)

    def click(self, x: float, y: float) -> None:
        assert self._page is not None
        self._page.mouse.click(x, y)

    def type(self, text: str) -> None:
        assert self._page is not None
        self._page.keyboard.type(text)

    def wheel(self, x: float, y: float, down: float, right: float = 0) -> None:
        """Turns the wheel while the mouse is at a place."""
        assert self._page is not None
        self._page.mouse.move(x, y)
        self._page.mouse.wheel(right, down)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Moves the mouse with its button down."""
        assert self._page is not None
        self._page.mouse.move(*start)
        self._page.mouse.down()
        self._page.mouse.move(*end, steps=4)
        self._page.mouse.up()

    def hover(self, x: float, y: float) -> None:
        assert self._page is not None
        self._page.mouse.move(x, y)

    def touch(self, *ways: tuple[tuple[float, float], tuple[float, float]], steps: int = 5) -> None:
        """Fingers that go down together, each move from one place to another, and go up again."""
        assert self._context is not None
        session = self._context.new_cdp_session(self._page)

        def tell(kind: str, share: float | None) -> None:
            points = [
                {"x": x0 + share * (x1 - x0), "y": y0 + share * (y1 - y0), "id": finger}
                for finger, ((x0, y0), (x1, y1)) in enumerate(ways)
                if share is not None
            ]
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        tell("touchStart", 0.0)
        for step in range(1, steps + 1):
            tell("touchMove", step / steps)
        tell("touchEnd", None)

    def press(self, name: str) -> None:
        """Clicks the button of this name."""
        assert self._page is not None
        self._page.get_by_role("button", name=name, exact=True).first.click()

    def lose_network(self) -> None:
        """From here on no request is answered."""
        assert self._context is not None
        self._context.set_offline(True)

    def media(self, **how: Any) -> None:
        """As paper, or in other colours."""
        assert self._page is not None
        self._page.emulate_media(**how)

    def saved(self, name: str) -> bytes:
        """What a button saves as a file."""
        assert self._page is not None
        with self._page.expect_download() as download:
            self.press(name)
        return Path(download.value.path()).read_bytes()

    def taken_errors(self) -> list[str]:
        """The errors since it was asked before."""
        found, self.errors = self.errors, []
        return found

    def taken_requests(self) -> list[str]:
        """The addresses asked for since it was asked before."""
        found, self.requests = self.requests, []
        return found

    def text(self, name: str = "panel") -> str:
        """What is shown in an element."""
        return str(self.evaluate(f"byId({json.dumps(name)}).innerText"))

    def html(self) -> str:
        """The document as it is now."""
        assert self._page is not None
        return str(self._page.content())

    def memory(self) -> float:
        """Bytes of the page's script, with the buffers that it holds."""
        assert self._context is not None
        session = self._context.new_cdp_session(self._page)
        found = session.send("Runtime.getHeapUsage")
        return float(sum(found.get(name, 0) for name in ("usedSize", "embedderHeapUsedSize", "backingStorageSize")))

    def process_memory(self) -> float:
        """Bytes of the page's process that it does not share with others: code, script, pictures, all of it."""
        session = self._browser.new_browser_cdp_session()
        found = session.send("SystemInfo.getProcessInfo")["processInfo"]
        renderers = [int(each["id"]) for each in found if each["type"] == "renderer"]
        sums = [Path(f"/proc/{process}/smaps_rollup").read_text() for process in renderers]
        return max(1024.0 * sum(map(int, re.findall(r"Private_\w+: +(\d+) kB", each))) for each in sums)

    def screenshot(self, path: Path) -> None:
        assert self._page is not None
        self._page.screenshot(path=path)


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with one page."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (slow, and only here)

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=PATH, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield Page(found)
        finally:
            found.close()
