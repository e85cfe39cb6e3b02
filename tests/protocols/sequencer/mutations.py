"""Deliberate breakages of the sequencer's broadcast, one for each rule and each departure from the paper.

A mutation is a change of source text, compiled into a copy of the modules that the protocol consists of. What does
not notice it does not test it.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from unittest.mock import patch

from ordercast.protocols.sequencer import Sequencer

MODULES = (
    "sequencer_state",
    "sequencer_receiving",
    "sequencer_ordering",
    "sequencer_sending",
    "sequencer_views",
    "sequencer",
)
"""What the protocol consists of; each uses only those before it."""


class Mutation(NamedTuple):
    """A breakage: in which module which text, found once, becomes which other text."""

    name: str
    module: str
    old: str
    new: str

    def machine(self) -> type[Sequencer]:
        """The protocol with this breakage, as a copy: the real one is not touched."""
        text = source_of(self.module)
        assert text.count(self.old) == 1, f"{self.name}: {self.old!r} is {text.count(self.old)} times in {self.module}"
        return compiled(self.module, text.replace(self.old, self.new))


def source_of(module: str) -> str:
    """The text of one of the modules."""
    spec = find_spec(f"ordercast.protocols.{module}")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


def compiled(changed: str = "", text: str = "") -> type[Sequencer]:
    """The protocol with the text of one of its modules replaced."""
    copies: dict[str, ModuleType] = {}
    with patch.dict(sys.modules):
        for module in MODULES:
            name = f"ordercast.protocols.{module}"
            copy = ModuleType(name)
            source = text if module == changed else source_of(module)
            exec(compile(source, f"<{module}>", "exec"), copy.__dict__)  # noqa: S102
            sys.modules[name] = copies[module] = copy
    machine = copies["sequencer"].Sequencer
    assert isinstance(machine, type)
    return machine


def changes_in(module: str, *changes: tuple[str, str, str]) -> list[Mutation]:
    return [Mutation(name, module, old, new) for name, old, new in changes]
