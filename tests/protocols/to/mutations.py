"""Deliberate breakages of TO and PriTO, one for each rule and each departure from the paper.

A mutation is a change of source text, compiled into a copy of the modules that the protocols consist of. What does
not notice it does not test it.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from unittest.mock import patch

from tests.protocols.to.driver import Machines

MODULES = ("timers", "to_log", "to_state", "to_normal", "to", "prito")
"""What the protocols consist of; each uses only those before it."""


class Mutation(NamedTuple):
    """A breakage: in which module which text, found once, becomes which other text."""

    name: str
    module: str
    old: str
    new: str

    def machines(self) -> Machines:
        """The protocols with this breakage, as copies: the real ones are not touched."""
        text = source_of(self.module)
        assert text.count(self.old) == 1, f"{self.name}: {self.old!r} is {text.count(self.old)} times in {self.module}"
        return compiled(self.module, text.replace(self.old, self.new))


def source_of(module: str) -> str:
    """The text of one of the modules."""
    spec = find_spec(f"ordercast.protocols.{module}")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


def compiled(changed: str = "", text: str = "") -> Machines:
    """The protocols with the text of one of their modules replaced."""
    copies: dict[str, ModuleType] = {}
    with patch.dict(sys.modules):
        for module in MODULES:
            name = f"ordercast.protocols.{module}"
            copy = ModuleType(name)
            source = text if module == changed else source_of(module)
            exec(compile(source, f"<{module}>", "exec"), copy.__dict__)  # noqa: S102
            sys.modules[name] = copies[module] = copy
    return Machines(copies["to"].To, copies["prito"].Prito)


def changes(module: str, *texts: tuple[str, str, str]) -> list[Mutation]:
    """Breakages of one module: name, text, other text."""
    return [Mutation(name, module, old, new) for name, old, new in texts]
