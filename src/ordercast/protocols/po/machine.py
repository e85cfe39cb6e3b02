"""PO: each message to everybody, each sender's order kept, over channels that lose units; after a loss, go back.

From: Takizawa and Nakamura's partially ordering broadcast protocol, which the papers on SPO compare themselves with
(EN section 5.2, JP section 4.2 and Table 1). They print none of its rules, only what it costs: everything goes to
everybody, what comes from each source is kept apart, and after a loss whatever that source sent later is thrown away
and sent again. PO is therefore SPO (see `spo`, with its papers and its departures) with two differences:

 1. A message goes to everybody, the sender included; any other set of destinations is a mistake of the caller.
 2. Go-back-n in place of selective repair. A receiver keeps nothing that comes ahead of a gap. It asks once for each
    first missing number, and again while that does not come. The source then sends again everything from that number
    on, to all. So `retransmitted` counts what N_PO of Table 1 counts: the lost packet and all behind it.

Two rules keep that from feeding on itself. Only what comes ahead of a gap whose first number was never asked for is
a reason to ask at once: what was asked for comes in order, and while it does nothing more is lost. And a source that
has just gone back to before a number does not go back to it once more in a short while, whoever asks: one repetition
serves all who lost something of it.
"""

from collections.abc import Sequence

from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Discard, Output, Send, Submit
from ordercast.model.nodes import names_of
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.state import Missing
from ordercast.protocols.spo.units import Data, Ready


class Po(Spo):
    """The protocol at one node. See the module for what it takes from SPO and what not."""

    def _submit(self, event: Submit) -> None:
        if event.destinations != self._everybody:
            asked_for = names_of(event.destinations) if event.destinations > 0 else event.destinations
            raise LocalProtocolError(
                f"PO brings every message to all {self._nodes} nodes, the sender too: {asked_for} was asked for"
            )
        super()._submit(event)

    def _hold(self, unit: Data, number: int, out: list[Output]) -> None:
        """What comes ahead of a gap is not kept: it will come again."""
        del number
        out.append(Discard(unit, "gap"))
        self._ask_if_new(unit.source, out)

    def _receive_ready(self, unit: Ready, out: list[Output]) -> None:
        super()._receive_ready(unit, out)
        self._ask_if_new(unit.source, out)

    def missing(self, since: Sequence[int]) -> Missing:
        """By source, all from the first missing number on; not if that lies below `since`, nor what I would refuse."""
        return tuple(
            (source, ((first, high),))
            for source, (first, high) in enumerate(zip(self.expected_to_me, self.seen_to_me, strict=True))
            if since[source] <= first < high and self.places[source] < self.config.quota
        )

    def _note_gap(self, source: int, out: list[Output]) -> None:
        """Whatever is missing is asked for again until it comes; what asks for the first time is `_ask_if_new`.

        After an accepted copy there is a gap, too, while the copies behind it are still under way.
        """
        del source
        if not self.repeat_timer:
            self.repeat_timer, self.repaired, self.repeat_patience = True, False, 1
            self._set_timer("repeat", self.config.timing.repeat, out)

    def _ask_if_new(self, source: int, out: list[Output]) -> None:
        """If what came is ahead of a gap, its first number is lost, since the units of one source keep their order."""
        if self.requested_below[source] <= self.expected_to_me[source] < self.seen_to_me[source]:
            if self.cooling:
                self.new_gap = True
            else:
                self._request_new(out)

    def _request_new(self, out: list[Output]) -> None:
        """Everything from each first missing number on that was not asked for yet, of all sources in one unit."""
        missing = self.missing(self.requested_below)
        for source, ((first, _),) in missing:
            self.requested_below[source] = first + 1
        if missing:
            self.cooling = True
            self._send_ready(out, missing=missing)
            self._set_timer("cooldown", self.config.timing.cooldown, out)

    def _repair(self, node: int, ranges: tuple[tuple[int, int], ...], out: list[Output]) -> None:
        """Goes back to the first number asked for, unless the node has said since that it has come."""
        lacking = self.sent.by_destination[node]
        for first, _ in ranges[:1]:
            if not lacking or lacking[0].seq != first or first in self.guarded:
                return
            if not self.guarded:
                self._set_timer("guard", self.config.timing.guard, out)
            for packet in lacking:
                self.guarded.add(packet.seq)
                out.append(Send(Data(packet, self._status()), again=True))
