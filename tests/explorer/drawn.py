"""Machines that nobody would write: what they do is drawn for each of their few states and each input, once for all.

They speak, are silent, set timers, claim and deliver whatever they like, each item once at each level: so nothing is
wrong at one node alone, and whatever a search must find, all nodes together bring about.
"""

from random import Random
from typing import Any, ClassVar

from ordercast.explorer.scenario import Promise, Scenario, scripts
from ordercast.model.config import GroupConfig
from ordercast.model.machine import (
    Deliver,
    Echo,
    Input,
    Level,
    Output,
    Reached,
    Receive,
    Send,
    SetTimer,
    TimerFired,
    ViewInstalled,
)
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.spo.units import Data, Status
from tests.explorer.toys import Flood


class Drawn(Flood):
    """One of these machines; `about` says what it is inclined to."""

    seed: ClassVar[int] = 0
    packets: ClassVar[tuple[Packet, ...]] = ()
    about: ClassVar[dict[str, Any]] = {}

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        # its state, what it may still send, its view and whether it was shut out of it, what it accepted and claimed
        self.numbers = [0, self.about["sends"], 0, 0, 0, 0]

    def handle(self, event: Input) -> list[Output]:
        state, left, view, out, _, _ = self.numbers
        if out:
            return []
        chance = Random(f"{self.seed}/{self.me}/{state}/{_told(event)}")
        self.numbers[0] = chance.randrange(self.about["states"])
        did = [output for _ in range(chance.choice([0, 1, 1, 2])) for output in self._claim(chance)]
        if left and chance.random() < self.about["speaks"]:
            self.numbers[1] -= 1
            packet = Packet(self.me, 0, 9, (), 9, (1,), b"%d" % chance.randrange(3))
            to = None if chance.random() < 0.6 else chance.randrange(self.config.nodes)
            did.append(Send(Data(packet, Status(0, ())), to=to))
        if chance.random() < self.about["ticks"]:
            did.append(SetTimer(chance.choice("ab"), 1))
        if self.about["views"] and chance.random() < 0.15:
            members = chance.randrange(1, 1 << self.config.nodes)
            self.numbers[2:4] = view + 1, int(not members >> self.me & 1)
            did.append(ViewInstalled(view + 1, members, ""))
        return did

    def _claim(self, chance: Random) -> list[Output]:
        place = chance.randrange(len(self.packets))
        packet, bit = self.packets[place], 1 << place
        _, _, _, _, accepted, claimed = self.numbers
        if chance.random() < 0.6:
            if accepted & bit or not packet.destinations >> self.me & 1:
                return []
            self.numbers[4] |= bit
            delivers = [Deliver(packet)] if self.about["delivers"] else []
            return [Reached(Level.ACCEPTED, packet), *delivers]
        if claimed & bit or not accepted & bit or not self.about["claims"]:
            return []
        self.numbers[5] |= bit
        return [Reached(Level.PREACKNOWLEDGED, packet)]


def _told(event: Input) -> str:
    if isinstance(event, Receive) and isinstance(event.unit, Data):
        return f"hears {event.unit.packet.payload.decode()}"
    return f"fires {event.name}" if isinstance(event, TimerFired) else "sends"


def drawn_scenario(seed: int) -> Scenario:
    """A small group of them, on any channel, disturbed in any way."""
    chance = Random(seed)
    nodes = chance.choice([2, 3, 3])
    lines: list[list[str]] = [[] for _ in range(nodes)]
    for number in range(chance.randint(1, 3)):
        to = sorted(chance.sample(range(1, nodes + 1), chance.randint(1, nodes)))
        chance.choice(lines).append(f"m{number}{{{','.join(map(str, to))}}}")
    sent = scripts(*map(" ".join, lines))
    views = chance.random() < 0.35
    ladder = not views and chance.random() < 0.6
    delivers = not ladder and chance.random() < 0.7

    class Machine(Drawn):
        echo = chance.choice([Echo.NONE, Echo.NONE, Echo.SAFE, Echo.CHANNEL])

    Machine.seed = seed
    Machine.packets = tuple(
        Packet(source, item.destinations, first, (), first, item.lengths, item.payload)
        for source, script in enumerate(sent)
        for first, item in enumerate(script)
    )
    Machine.about = {"views": views, "delivers": delivers, "states": chance.choice([2, 3, 4])}
    Machine.about |= {"sends": chance.choice([1, 2, 2, 3]), "speaks": chance.choice([0.3, 0.6])}
    Machine.about |= {"ticks": chance.choice([0, 0.3, 0.6]), "claims": chance.random() < 0.6}
    return Scenario(
        machine=Machine,
        group=GroupConfig(nodes=nodes),
        scripts=sent,
        promise=Promise(
            sender_order=False,
            ladder=ladder,
            liveness_goal=None,
            one_order=delivers,
            views=views,
            uniform=views and chance.random() < 0.3,
        ),
        channel=chance.choice([Channel.ONE, Channel.MANY, Channel.ANY]),
        losses=chance.choice([0, 1, 2]),
        duplicates=chance.choice([0, 0, 1]),
        firings=chance.choice([0, 1, 2]),
        crashes=chance.choice([0, 0, 1]),
        patient=chance.random() < 0.3,
    )
