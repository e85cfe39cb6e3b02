"""The sequencer's broadcast with one departure from the paper taken back at a time: what an explorer must find."""

from ordercast.model.config import GroupConfig
from ordercast.model.machine import Output
from ordercast.model.units import Packet, Unit
from ordercast.protocols.sequencer.loss_detection import Ranges
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.sequencer.orderer import Orderer
from ordercast.protocols.sequencer.reception import Reception
from ordercast.protocols.sequencer.sender import Sender
from ordercast.protocols.sequencer.units import Broadcast, Flushed
from ordercast.protocols.sequencer.view_agreement import ViewAgreement


class _StoringReception(Reception):
    def take(self, number: int, packet: Packet, out: list[Output]) -> bool:
        if number < self.received_below:
            return False
        self.detect_loss(number + 1, out, lacks=self.known_below < number)
        self.store(packet, out)
        return True


class StoresWhatIsAhead(Sequencer):
    """What is received ahead of a gap is taken for the next broadcast."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.reception.__class__ = _StoringReception


class _TrustingOrderer(Orderer):
    def _lowest_acknowledged(self) -> int:
        return max(self.acknowledged)


class TakesTheHighestForStable(Sequencer):
    """What one member has acknowledged is called received by all (S2)."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.orderer.__class__ = _TrustingOrderer


class _IncuriousSender(Sender):
    def acknowledge(self, missing: Ranges, out: list[Output], *, wants_status: bool = False) -> None:
        del wants_status
        super().acknowledge(missing, out)


class NeverAsksForTheStatus(Sequencer):
    """Nobody asks the sequencer whether what it has is stable (S6)."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.sender.__class__ = _IncuriousSender


class _ShortestAgreement(ViewAgreement):
    def _longest_report(self) -> Flushed:
        return min(self.reports.values(), key=lambda report: (report.received_below, -report.source))


class TakesTheShortestLog(Sequencer):
    """The next view begins where the member that has received least stands (S8)."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.agreement.__class__ = _ShortestAgreement


class ReceivesWhileStopped(Sequencer):
    """A member that has promised to stop still receives broadcasts (S8)."""

    def _receive(self, unit: Unit, out: list[Output]) -> None:
        if type(unit) is Broadcast and (unit.view, unit.source) == (self.view.number, self.view.sequencer):
            self.sender.answered, self.agreement.suspects = True, 0
            self.reception.receive_broadcast(unit, out)
        else:
            super()._receive(unit, out)


class _RememberingOrderer(Orderer):
    def start_view(self) -> None:
        reception = self.reception
        if self.view.is_sequencer:
            self.acknowledged[self.me] = reception.received_below
            self.number_of = {(packet.source, packet.seq): number for number, packet in reception.history.items()}


class KeepsTheTable(Sequencer):
    """What a sequencer knows of one view is taken over into the next."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.orderer.__class__ = _RememberingOrderer


class _HastyReception(Reception):
    def deliver(self, out: list[Output]) -> None:
        commit_below, self.commit_below = self.commit_below, self.received_below
        super().deliver(out)
        self.commit_below = commit_below


class DeliversBeforeCommit(Sequencer):
    """The resilience degree is not waited for."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.reception.__class__ = _HastyReception


class _EasilySatisfiedOrderer(Orderer):
    def note_acknowledged(self, node: int, below: int, out: list[Output]) -> None:
        reception = self.reception
        if self.view.resilience and below > max(reception.commit_below, self.acknowledged[node]):
            reception.commit_below = below
        super().note_acknowledged(node, below, out)


class WaitsForOneHolder(Sequencer):
    """Whatever the resilience degree, one member that has a message besides the sequencer is enough."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config)
        self.orderer.__class__ = _EasilySatisfiedOrderer
