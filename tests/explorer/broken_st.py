"""ST with one departure from the paper taken back at a time: what an explorer must find, or it finds nothing."""

import msgspec

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output, Reached
from ordercast.model.units import Packet
from ordercast.protocols.shared.watched_logs import WatchedLogs
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.machine import St
from ordercast.protocols.st.normal import ACCEPTED
from ordercast.protocols.st.units import ResetReply


class AsksDestinationsOnly(St):
    """Pre-acknowledges what all destinations have heard, rather than all nodes (3.3 as printed)."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.accepted = WatchedLogs(2, self.accepted.columns)


class ForgetsThePrefix(St):
    """Orders without rule (c): what a node lacks may come before what it has pre-acknowledged."""

    def _take_reply(self, reply: ResetReply, out: list[Output]) -> None:
        super()._take_reply(msgspec.structs.replace(reply, preacknowledged=0), out)


class LearnsFromAnything(St):
    """Takes the facts of every unit, accepted or not."""

    def _receive_in_epoch(self, unit: Data | Ready, epoch: int, out: list[Output]) -> None:
        if epoch == self.epoch and not self.frozen:
            self._learn(unit.source, unit.status, out)
        super()._receive_in_epoch(unit, epoch, out)


class HearsItselfAtOnce(St):
    """Counts its own packets as heard when it sends them: they have no place on the channel yet."""

    def _learn_of_myself(self) -> None:
        columns = self.accepted.columns
        columns[self.me] = (*self.expected[: self.me], self.next_seq, *self.expected[self.me + 1 :])

    def _receive_in_epoch(self, unit: Data | Ready, epoch: int, out: list[Output]) -> None:
        super()._receive_in_epoch(unit, epoch, out)
        if epoch == self.epoch and not self.frozen:
            self._learn_of_myself()
            for row in self.accepted.wake(self.me):
                (self._release if row else self._preacknowledge)(out)


class DeliversOldAtOnce(St):
    """Delivers what an epoch left when it has finished it itself, whoever else has not."""

    def _deliver_old(self, out: list[Output]) -> None:
        seen, self.epoch_seen = self.epoch_seen, [self.epoch] * self._nodes
        super()._deliver_old(out)
        self.epoch_seen = seen


class ChangesItsReply(St):
    """Says again what it holds as of now, rather than as of when it stopped."""

    def _keep_content(self, packet: Packet, out: list[Output]) -> None:
        own = self.replies[self.me]
        if own is not None and self.order is None and packet.destinations & self._my_bit:
            entry = (packet.source, packet.seq, packet.destinations)
            if entry not in own.log:
                self.replies[self.me] = msgspec.structs.replace(own, log=(*own.log, entry))
                self.log.append(packet)
                out.append(Reached(ACCEPTED, packet))
                return
        super()._keep_content(packet, out)
