"""One machine of the printed SPO on the table, and units made by hand."""

from typing import Any

from ordercast.model.config import GroupConfig, LossInference, PaperRules
from ordercast.model.machine import (
    Level,
    Numbered,
    Output,
    Reached,
    Receive,
    Send,
    Submit,
)
from ordercast.model.nodes import mask_of
from ordercast.model.units import Packet, Unit
from ordercast.protocols.spo.paper import SpoPaper
from ordercast.protocols.spo.units import Data, Status
from tests.protocols.spo_paper.group import E2, nodes_of

BUFFERS = 1000


def entity(
    me: int = E2,
    condition_2: LossInference = LossInference.ALL,
    *,
    paper: dict[str, Any] | None = None,
    **settings: Any,
) -> SpoPaper:
    rules = PaperRules(**{"condition_2": condition_2, "initial_buffers": BUFFERS, **(paper or {})})
    return SpoPaper(me, GroupConfig(nodes=3, paper=rules, **settings))


def unit(source: int, to: str, seq: int, seq_to: tuple[int, ...], expects: tuple[int, ...], free: int = 0) -> Data:
    return Data(Packet(source, mask_of(nodes_of(to)), seq, seq_to, 0, (1,), b"x"), Status(1, expects, free=free))


def hears(machine: SpoPaper, what: Unit) -> list[Output]:
    return machine.handle(Receive(what))


def submits(machine: SpoPaper, to: str) -> list[Output]:
    return machine.handle(Submit(mask_of(nodes_of(to)), (1,), b"x"))


def sends(machine: SpoPaper, to: str) -> Data:
    """What follows when it can send at once."""
    numbered, sent = submits(machine, to)
    assert isinstance(numbered, Numbered)
    assert isinstance(sent, Send)
    assert isinstance(sent.unit, Data)
    assert numbered.packet == sent.unit.packet
    return sent.unit


def units(out: list[Output]) -> list[Unit]:
    return [output.unit for output in out if isinstance(output, Send)]


def risen(out: list[Output], level: Level) -> list[int]:
    return [output.packet.seq for output in out if isinstance(output, Reached) and output.level is level]


def is_accepted(out: list[Output]) -> bool:
    return bool(risen(out, Level.ACCEPTED))
