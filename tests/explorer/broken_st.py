"""ST with one departure from the paper taken back at a time: what an explorer must find, or it finds nothing."""

from typing import ClassVar

import msgspec

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Deliver, Output, Reached
from ordercast.model.units import Packet
from ordercast.protocols.shared.pending_acknowledgments import PendingAcknowledgments
from ordercast.protocols.spo.units import Data, Ready
from ordercast.protocols.st.channel_logs import RECEIVED
from ordercast.protocols.st.machine import St
from ordercast.protocols.st.normal_operation import ACCEPTED, NormalOperation
from ordercast.protocols.st.recovery import Recovery
from ordercast.protocols.st.units import ResetReply


class StOfParts(St):
    """ST with other parts than its own."""

    normal_operation: ClassVar[type[NormalOperation]] = NormalOperation
    recovering: ClassVar[type[Recovery]] = Recovery

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.normal = self.normal_operation(me, config, self.finished, self.backoff)
        self.recovery = self.recovering(self.normal)


class AsksDestinationsOnly(St):
    """Pre-acknowledges what all destinations have accepted, rather than all nodes (3.3 as printed)."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.normal.accepted = PendingAcknowledgments(2, self.normal.accepted.acknowledged_below)


class _WithoutThePrefix(Recovery):
    def take_reply(self, reply: ResetReply, out: list[Output]) -> None:
        super().take_reply(msgspec.structs.replace(reply, preacknowledged=0), out)


class ForgetsThePrefix(StOfParts):
    """Orders without rule (c): what a node lacks may come before what it has pre-acknowledged."""

    recovering = _WithoutThePrefix


class LearnsFromAnything(St):
    """Takes the status of every unit, accepted or not."""

    def receive_in_epoch(self, unit: Data | Ready, epoch: int, out: list[Output]) -> None:
        if epoch == self.normal.epoch and not self.recovery.active:
            self.normal.take_status(unit.source, unit.status, out)
        super().receive_in_epoch(unit, epoch, out)


class HearsItselfAtOnce(St):
    """Accepts its own packets when it sends them: they have no place on the channel yet."""

    def receive_in_epoch(self, unit: Data | Ready, epoch: int, out: list[Output]) -> None:
        super().receive_in_epoch(unit, epoch, out)
        normal = self.normal
        if epoch == normal.epoch and not self.recovery.active:
            before, after = normal.expected[: normal.me], normal.expected[normal.me + 1 :]
            normal.accepted.acknowledged_below[normal.me] = (*before, normal.next_seq, *after)
            for log in normal.accepted.unblocked_by(normal.me):
                (normal.preacknowledge if log == RECEIVED else normal.release)(out)


class _DeliversFinishedAtOnce(NormalOperation):
    def deliver_finished(self, out: list[Output]) -> None:
        seen, self.finished.epoch_seen = self.finished.epoch_seen, [self.epoch] * self.nodes
        super().deliver_finished(out)
        self.finished.epoch_seen = seen


class DeliversOldAtOnce(StOfParts):
    """Delivers what an epoch left when it has finished it itself, whoever else has not."""

    normal_operation = _DeliversFinishedAtOnce


class _ExtendsItsReply(Recovery):
    def keep_packet(self, packet: Packet, out: list[Output]) -> None:
        normal = self.normal
        own = self.replies[normal.me]
        if own is not None and self.order is None and packet.destinations & normal.my_bit:
            entry = (packet.source, packet.seq, packet.destinations)
            if entry not in own.log:
                self.replies[normal.me] = msgspec.structs.replace(own, log=(*own.log, entry))
                normal.log.append(packet)
                out.append(Reached(ACCEPTED, packet))
                return
        super().keep_packet(packet, out)


class ChangesItsReply(StOfParts):
    """Says again what it holds as of now, rather than as of when it stopped."""

    recovering = _ExtendsItsReply


class _DeliversEarly(NormalOperation):
    def receive_data(self, unit: Data, out: list[Output]) -> bool:
        begin = len(out)
        detected = super().receive_data(unit, out)
        outputs = [each for each in out[begin:] if not isinstance(each, Deliver)]
        early = [Deliver(each.packet) for each in outputs if isinstance(each, Reached) and each.level is ACCEPTED]
        out[begin:] = [*outputs, *early]
        return detected


class DeliversWhatItAccepts(StOfParts):
    """Delivers what it has, whether others have it or not."""

    normal_operation = _DeliversEarly


class _Forgets(Recovery):
    def finish(self, out: list[Output]) -> None:
        super().finish(out)
        self.normal.finished.delivered.clear()


class ForgetsWhatItDelivered(StOfParts):
    """With `delivers_stable`: what was delivered in an epoch is delivered again when all have finished it."""

    recovering = _Forgets
