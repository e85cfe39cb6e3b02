"""Semantic mutants of what live members do without a socket: fragments, order, flow, congestion, partial messages."""

from ordercast.live.host.congestion import FlightWindow
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.message_fragments import MessageReassembler
from ordercast.live.transport import fragmentation
from ordercast.live.transport.beside_relay import POSITION
from ordercast.live.transport.fragmentation import DatagramReassembler
from ordercast.live.transport.gathering import Gathering
from ordercast.live.transport.receiving import Receiving
from ordercast.live.transport.relay import Relay, RelayClient
from ordercast.live.transport.reorder_buffer import Stream
from ordercast.live.transport.sending import Sending
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("live.transport.reorder_buffer")


@MUTANTS.add("what is held at the end of a stream is dropped")
def _drops_what_is_held() -> None:
    replace(Stream, "finish", lambda _: [])


@MUTANTS.add("how late something was is not learnt from")
def _learns_nothing() -> None:
    replace(Stream, "_learn", lambda *_: None)


@MUTANTS.add("incomplete datagrams are kept for ever", "live.transport.fragmentation")
def _keeps_all_fragments() -> None:
    replace(DatagramReassembler, "_make_room", lambda *_: None)


@MUTANTS.add("the last piece of a datagram is forgotten", "live.transport.fragmentation")
def _forgets_the_last_piece() -> None:
    wrap(fragmentation, "fragment", lambda fragment: lambda *asked: fragment(*asked)[:-2])


@MUTANTS.add("a relay waits though all have spoken", "live.transport.gathering")
def _waits_for_those_that_have_spoken() -> None:
    replace(Gathering, "spoke", lambda *_: None)


@MUTANTS.add("an echo stands for whatever was sent first", "live.transport.relay")
def _takes_the_first() -> None:
    replace(RelayClient, "echoed", lambda self, _: self.on_the_way._forget_first() if self.on_the_way else None)


@MUTANTS.add("a status beside the relay waits for nothing", "live.transport.beside_relay")
def _waits_for_nothing() -> None:
    replace(
        Receiving,
        "_receive_beside",
        lambda self, place, body: self._unpack(place, memoryview(body)[POSITION.size :], in_session=True),
    )


@MUTANTS.add("a status goes beside the relay before what was sent by it", "live.transport.beside_relay")
def _overtakes_its_own_data() -> None:
    replace(Sending, "_all_are_back", lambda self: self._table.relay is not None)


@MUTANTS.add("what is short is passed on in another order than it came", "live.transport.relay")
def _passes_on_in_another_order() -> None:
    wrap(Relay, "release", lambda release: lambda self: (self._collected.reverse(), release(self))[1])


@MUTANTS.add("members that were closed in the view before are waited for", "live.host.flow_control")
def _waits_for_places_of_another_view() -> None:
    replace(FlowControl, "enter_view", lambda _: None)


@MUTANTS.add("the window follows no measurement", "live.host.congestion")
def _never_sets_the_window() -> None:
    replace(FlightWindow, "update", lambda _: None)


@MUTANTS.add("messages that members had begun when they went are kept", "live.host.message_fragments")
def _keeps_messages_of_those_that_are_gone() -> None:
    replace(MessageReassembler, "move", lambda *_: None)
