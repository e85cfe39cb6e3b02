"""Semantic mutants of `protocols.to.machine` and its parts."""

from collections.abc import Callable
from typing import Any

from ordercast.model.machine import Output
from ordercast.model.units import Packet
from ordercast.protocols.shared.backoff import Backoff
from ordercast.protocols.to import recovery
from ordercast.protocols.to.delivery import ChannelOrder, Deliveries
from ordercast.protocols.to.machine import TotalOrderBroadcast
from ordercast.protocols.to.reception import Reception
from ordercast.protocols.to.recovery import Recovery
from ordercast.protocols.to.transmission import Transmission
from ordercast.protocols.to.unanimous_log import UnanimousLog
from ordercast.protocols.to.units import Vector, vector_of
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.to.machine")
Receive = Callable[[Reception, Any, Any, list[Output]], str]


@MUTANTS.add("delivers one level too early: what is pre-acknowledged counts as acknowledged", "protocols.to.reception")
def _() -> None:
    def around(receive: Receive) -> Receive:
        def early(self: Reception, unit: Any, heading: Any, out: list[Output]) -> str:
            loss = receive(self, unit, heading, out)
            packets = [packet for _, _, packet in self.preacknowledged.entries]
            self.preacknowledged.entries.clear()
            self.policy.acknowledge(packets, out)
            return loss

        return early

    wrap(Reception, "receive", around)


def _overlooks(evidence: str) -> None:
    def around(receive: Receive) -> Receive:
        def blind(self: Reception, unit: Any, heading: Any, out: list[Output]) -> str:
            loss = receive(self, unit, heading, out)
            return "" if loss == evidence else loss

        return blind

    wrap(Reception, "receive", around)


@MUTANTS.add("a skipped number is no loss", "protocols.to.reception")
def _() -> None:
    _overlooks("gap")


@MUTANTS.add("no loss is inferred from the acknowledgments of peers", "protocols.to.reception")
def _() -> None:
    _overlooks("hearsay")


@MUTANTS.add("a node that lacks what it has acknowledged is believed", "protocols.to.reception")
def _() -> None:
    replace(Reception, "contradicts", lambda *_: False)


@MUTANTS.add("what is kept is not acknowledged when an epoch begins", "protocols.to.reception")
def _() -> None:
    def begin_epoch(self: Reception, _: list[Output]) -> int:
        self.preacknowledged.refill(tuple(self.preacknowledged.entries), self.accepted.acknowledged_below)
        carried = len(self.accepted.entries)
        self.pending = self.pending_in_sequence = carried > 0
        return carried

    replace(Reception, "begin_epoch", begin_epoch)


@MUTANTS.add("the first node that acknowledges lets the top of a log go", "protocols.to.unanimous_log")
def _() -> None:
    def take_acknowledged(self: UnanimousLog[Any]) -> list[Any]:
        taken = []
        while self.entries and any(
            column[self.entries[0][0]] > self.entries[0][1] for column in self.acknowledged_below
        ):
            taken.append(self.entries.popleft()[2])
        return taken

    replace(UnanimousLog, "take_acknowledged", take_acknowledged)


@MUTANTS.add("the cut is what somebody has accepted", "protocols.to.recovery")
def _() -> None:
    def highest(vectors: list[Vector]) -> list[int]:
        return [max(column) for column in zip(*[vector_of(unit).expects for unit in vectors], strict=True)]

    replace(recovery, "cut_of", highest)


@MUTANTS.add("an epoch begins as soon as this node has rolled back", "protocols.to.recovery")
def _() -> None:
    def around(note: Callable[[Recovery, int], bool]) -> Callable[[Recovery, int], bool]:
        return lambda self, nodes: note(self, nodes | self.everybody)

    wrap(Recovery, "note_installed", around)


@MUTANTS.add("vectors are sent once", "protocols.to.recovery")
def _() -> None:
    def around(send: Callable[..., None]) -> Callable[..., None]:
        def once(self: Recovery, wants: int, out: list[Output]) -> None:
            sent = len(out)
            send(self, wants, out)
            if wants:
                del out[sent]

        return once

    wrap(Recovery, "send_vector", around)


@MUTANTS.add("a node that waits never polls")
def _() -> None:
    replace(TotalOrderBroadcast, "_poll", lambda *_: None)


@MUTANTS.add("what a recovery discards is never sent again", "protocols.to.transmission")
def _() -> None:
    replace(Transmission, "roll_back", lambda self: self.sent.clear())


@MUTANTS.add("no vector carries a packet", "protocols.to.transmission")
def _() -> None:
    replace(Transmission, "discarded_before", lambda _: None)


@MUTANTS.add("as much is sent after a loss as before it", "protocols.to.transmission")
def _() -> None:
    def around(roll_back: Callable[[Transmission], None]) -> Callable[[Transmission], None]:
        def undaunted(self: Transmission) -> None:
            roll_back(self)
            self.congestion_window = self.window

        return undaunted

    wrap(Transmission, "roll_back", around)


@MUTANTS.add("the window never closes", "protocols.to.transmission")
def _() -> None:
    replace(Transmission, "window_is_open", lambda _: True)


@MUTANTS.add("the quota is not observed", "protocols.to.delivery")
def _() -> None:
    replace(Deliveries, "has_room", lambda _: True)


@MUTANTS.add("a group that is given up delivers nothing more", "protocols.to.delivery")
def _() -> None:
    def nothing(_: ChannelOrder, preacknowledged: list[Packet]) -> list[Packet]:
        return preacknowledged[:0]

    replace(ChannelOrder, "delivered_on_abort", nothing)


@MUTANTS.add("a silent node is never given up", "protocols.shared.backoff")
def _() -> None:
    replace(Backoff, "count_unanswered", lambda *_: None)
