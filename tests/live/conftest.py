"""What every test of live members may want to be sure of."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.live.memory_network import use_memory


@pytest.fixture
def no_exception_escapes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """An exception that reaches the event loop would only be logged there, and the test would not notice."""
    escaped: list[dict[str, Any]] = []
    monkeypatch.setattr(
        asyncio.base_events.BaseEventLoop, "call_exception_handler", lambda _, context: escaped.append(context)
    )
    yield escaped
    assert not escaped


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of this test need no sockets."""
    use_memory(monkeypatch)
