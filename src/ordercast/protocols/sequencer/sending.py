"""The sequencer's broadcast, sending: what a node offers to the sequencer, and what it asks of it until it is at rest.

From: Kaashoek, Tanenbaum, Flynn Hummel and Bal, "An Efficient Reliable Broadcast Protocol" (1989), Figure 3. With a
window of 1 a node sends one packet at a time, as published; with more they are pipelined, and the sequencer keeps each
sender's order. A packet is under way until it is delivered here in its place.
"""

from ordercast.model.errors import LocalProtocolError
from ordercast.model.machine import Numbered, Output, Send, Submit
from ordercast.model.units import Packet
from ordercast.protocols.sequencer.ordering import SequencerOrdering
from ordercast.protocols.sequencer.state import MOST_PATIENT, MOST_PATIENT_WITH_SILENCE
from ordercast.protocols.sequencer.units import Offer

MOST_AGAIN = 4
"""Own packets that are offered again at once: the oldest, for the others may only wait for them."""


class SequencerSending(SequencerOrdering):
    """What a node that has something to send does."""

    def _submit(self, event: Submit) -> None:
        if event.destinations != self._everybody:
            raise LocalProtocolError(f"a message must go to all {self._nodes} nodes: the sequencer's is a broadcast")
        self.waiting.append(event)

    def _send_waiting(self, out: list[Output]) -> None:
        """As many as the window takes; none while the group synchronises."""
        if self.received_below <= self.in_sync_until:
            return
        while self.waiting and len(self.outstanding) < self.config.window and not self.closed:
            event = self.waiting.popleft()
            packet = Packet(
                self.me,
                event.destinations,
                self.next_seq,
                (),
                self.next_message,
                event.lengths,
                event.payload,
                event.priority,
            )
            self.next_seq += 1
            self.next_message += len(event.lengths)
            self.outstanding.append(packet)
            out.append(Numbered(packet))
            self._offer(packet, out)

    def _offer(self, packet: Packet, out: list[Output]) -> None:
        """To the sequencer; a large one to everybody, so that it crosses the network once (the BB method)."""
        if self.is_sequencer:
            self._take_offer(packet, out, direct=False)
            return
        direct = 0 < self.config.sequencer.direct_from <= packet.body_size()
        self.said_below = self.received_below
        offer = Offer(packet, self.view, self.received_below, direct)
        out.append(Send(offer, to=None if direct else self.sequencer))

    def _offer_again(self, packets: list[Packet], out: list[Output]) -> None:
        """To the sequencer alone: who lacks it will ask for it."""
        self.said_below = self.received_below
        offers = [Offer(packet, self.view, self.received_below) for packet in packets]
        out += [Send(offer, again=True, to=self.sequencer) for offer in offers]

    # --- until it is at rest ---

    def _need_due(self, out: list[Output]) -> bool:
        """Asks for what I wait for. True: the sequencer has been silent for too long.

        Only questions after which nothing at all was heard count: a sequencer that refuses to number, because its
        history is full, lives.
        """
        self.need_timer = False
        heard, self.heard = self.heard, False
        if heard:
            self.silent = 0
        elif self.asked:
            self.silent += 1
        if not self.in_need():
            return False
        most = MOST_PATIENT if heard else MOST_PATIENT_WITH_SILENCE
        self.patience = 1 if self.moved else min(most, 2 * self.patience)
        quiet, self.moved, self.asked = not self.moved, False, False
        overdue, missing = self._overdue(), self.missing(stop=self.overdue_below)
        if overdue:
            self.asked = True
            self._offer_again(overdue, out)
        if missing:
            self._say(missing, out)
        elif not overdue and quiet and not (heard and self.is_at_rest()):
            self._say((), out, asks=self.said_below == self.received_below)
        self.due_below, self.overdue_below = self.next_seq, self.known_below
        return self.silent > self.config.sequencer.suspect_after

    def _overdue(self) -> list[Packet]:
        """Own packets that were offered long ago and have not been seen with a number."""
        first = self.ordered_below[self.me]
        if first >= self.due_below:
            return []
        seen = {packet.seq for packet in self.ahead.values() if packet.source == self.me}
        overdue = [packet for packet in self.outstanding if first <= packet.seq < self.due_below]
        return [packet for packet in overdue if packet.seq not in seen][:MOST_AGAIN]

    def _pay(self, out: list[Output]) -> None:
        """At the end of each transition: what is owed is said, and if I wait for anything, the timer is set."""
        unsaid = self.received_below - self.said_below
        wanted = self.said_below < self.wanted_below <= self.received_below
        if unsaid and (wanted or self.says_at_once or unsaid >= self._dummy):
            self._say((), out)
        if not self.need_timer and self.in_need():
            self.need_timer = True
            timing, beat = self.config.timing, self.config.sequencer.heartbeat
            self.set_timer("need", beat if self.is_at_rest() else timing.repeat * self.patience, out)
