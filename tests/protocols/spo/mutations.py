"""Deliberate breakages of SPO: how one is made. Which there are: `mutations_hearing` and `mutations_speaking`.

A mutation is a change of source text, compiled into a copy of the modules that the protocol consists of. What does
not notice it does not test it.
"""

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, ModuleType
from typing import NamedTuple
from unittest.mock import patch

from ordercast.protocols.spo import Spo

MODULES = ("gaps", "timers", "watched_logs", "sending_log", "spo_state", "spo")
"""What the protocol consists of; each uses only those before it."""


class Mutation(NamedTuple):
    """One change in one place."""

    name: str
    """The rule, and what it is broken into."""
    module: str
    old: str
    """Text that stands in the module exactly once."""
    new: str
    in_runs: bool = False
    """Whole runs notice it too: it costs more than units and time."""

    def machine(self) -> type[Spo]:
        """The protocol with this change."""
        text = source_of(self.module)
        assert text.count(self.old) == 1, f"{self.name}: the text to change stands {text.count(self.old)} times"
        return compiled(self.module, text.replace(self.old, self.new))


@cache
def source_of(module: str) -> str:
    """The text of one of the modules."""
    spec = find_spec(f"ordercast.protocols.{module}")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


@cache
def _code_of(module: str) -> CodeType:
    return compile(source_of(module), f"<{module}>", "exec")


def compiled(changed: str, text: str) -> type[Spo]:
    """A copy of the protocol in which one module has this text; the real one is not touched."""
    with patch.dict(sys.modules):
        for module in MODULES:
            name = f"ordercast.protocols.{module}"
            copy = ModuleType(name)
            code = compile(text, f"<{module}, changed>", "exec") if module == changed else _code_of(module)
            exec(code, copy.__dict__)  # noqa: S102
            sys.modules[name] = copy
    machine = copy.Spo
    assert isinstance(machine, type)
    return machine
