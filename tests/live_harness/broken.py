"""Machines of live members, broken on purpose: how many random groups it takes until the harness notices each.

python -m tests.live_harness.broken                 # the table
python -m tests.live_harness.broken --seeds 500 --only Closing Stream
"""

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

from ordercast.live.host.batching import Outbox, OutgoingBatch
from ordercast.live.host.congestion import FlightWindow
from ordercast.live.host.flow_control import FlowControl
from ordercast.live.host.inbox import Inbox
from ordercast.live.host.leaving import Leaving
from ordercast.live.host.message_fragments import MessageReassembler
from ordercast.live.host.own_batches import OwnBatches
from ordercast.live.host.returning import Returning
from ordercast.live.host.timers import Timers
from ordercast.live.session.closing import Closing
from ordercast.live.session.handshake import Handshake
from ordercast.live.session.machine import Session
from ordercast.live.transport import fragmentation
from ordercast.live.transport.fragmentation import DatagramReassembler
from ordercast.live.transport.gathering import Gathering
from ordercast.live.transport.link_receiver import LinkReceiver
from ordercast.live.transport.link_sender import LinkSender
from ordercast.live.transport.packing import Packer
from ordercast.live.transport.relay import Relay
from ordercast.live.transport.reorder_buffer import Stream
from ordercast.protocols.membership.acceptor import Acceptor
from ordercast.protocols.membership.coordinator import Coordinator
from ordercast.protocols.membership.failure_detector import FailureDetector
from ordercast.wire.control import Stage
from ordercast.wire.replay_window import ReplayWindow
from tests.live_harness.draw import draw
from tests.live_harness.run import run_plan
from tests.mutations.mutation import replace, wrap

SEEDS = 200
_LONGEST = 60  # seconds of one seed: then it counts as noticed, since a run would never end


class Broken(NamedTuple):
    """A machine of a live member, and what is wrong with it."""

    machine: str
    name: str
    change: Callable[[], None]


BROKEN: list[Broken] = []


def broken(machine: type, name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Decorates a function that breaks something of this machine."""

    def added(change: Callable[[], None]) -> Callable[[], None]:
        BROKEN.append(Broken(machine.__name__, name, change))
        return change

    return added


def _now_and_then(method: Callable[..., Any], instead: Callable[..., Any], every: int = 5) -> Callable[..., Any]:
    """A method that does something else one time in so many."""
    count = 0

    def patched(*asked: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        return (instead if count % every == 0 else method)(*asked, **named)

    return patched


# --- sessions ---


@broken(Handshake, "opens when one other agrees, not all")
def _opens_early() -> None:
    def all_agree(self: Handshake) -> bool:
        return self.session != 0 and any(join.session == self.session for join in self.joins if join is not None)

    replace(Handshake, "all_agree", all_agree)


@broken(Handshake, "repeats no join")
def _repeats_no_join() -> None:
    replace(Handshake, "repeat", lambda *_: None)


@broken(Closing, "takes those that are closing for done")
def _done_early() -> None:
    wrap(Closing, "below", lambda below: lambda self, stage: below(self, Stage.CLOSING if stage else stage))


@broken(Closing, "takes whoever has said nothing for closing")
def _closes_alone() -> None:
    replace(Closing, "below", lambda *_: 0)


@broken(Session, "does not repeat how far it has closed")
def _says_its_stage_once() -> None:
    replace(Session, "_repeat_stage", lambda *_: None)


@broken(Session, "does not repeat that it ends")
def _says_its_end_once() -> None:
    replace(Session, "_send_end", lambda *_: None)


# --- membership and failure detection ---


@broken(FailureDetector, "suspects nobody")
def _suspects_nobody() -> None:
    replace(FailureDetector, "_suspect", lambda _: 0)


@broken(FailureDetector, "suspects whoever missed two heartbeats, and asks nobody")
def _suspects_early() -> None:
    def suspect(self: FailureDetector) -> int:
        newly = self._silent_for(self._quiet) & ~self.suspected
        self.suspected |= newly
        return newly

    replace(FailureDetector, "_suspect", suspect)


@broken(Coordinator, "begins no ballot")
def _begins_no_ballot() -> None:
    replace(Coordinator, "begin", lambda *_: None)


@broken(Coordinator, "repeats nothing, and takes over from nobody")
def _repeats_no_round() -> None:
    wrap(
        Timers,
        "set",
        lambda set_timer: lambda self, timer: None if timer.name == "view.round" else set_timer(self, timer),
    )


@broken(Acceptor, "answers every coordinator as if it had promised nothing to another")
def _promises_all() -> None:
    def follows(self: Acceptor, unit: Any, out: list[Any]) -> bool:
        self.promise(unit.ballot, out)
        return True

    replace(Acceptor, "follows", follows)


@broken(Acceptor, "reports less than it has delivered")
def _reports_less() -> None:
    wrap(Acceptor, "missing", lambda _: lambda *__: ())


@broken(Returning, "never returns when it was left out")
def _never_returns() -> None:
    replace(Returning, "_begin", lambda _: None)


@broken(Leaving, "does not say that it leaves")
def _says_no_leave() -> None:
    replace(Leaving, "say", lambda *_, **__: None)


@broken(Leaving, "says that it leaves before its messages are sent")
def _leaves_at_once() -> None:
    def say_if_sent(self: Leaving, host: Any) -> None:
        if self.begun and not self.said:
            self.say(host, drain=False)

    replace(Leaving, "say_if_sent", say_if_sent)


# --- fragments, links, order of datagrams ---


@broken(DatagramReassembler, "forgets the last piece of a datagram")
def _forgets_the_last_piece() -> None:
    wrap(fragmentation, "fragment", lambda fragment: lambda *asked: fragment(*asked)[:-2])


@broken(DatagramReassembler, "joins what has come in the order in which it came")
def _joins_as_it_came() -> None:
    def add(self: DatagramReassembler, part: memoryview, source: Any) -> bytes | None:
        del self, source
        return bytes(part[fragmentation.HEADING.size :])

    replace(DatagramReassembler, "_add", add)


@broken(MessageReassembler, "drops what members of the next view had begun")
def _drops_what_was_begun() -> None:
    def move(self: MessageReassembler, places: Any) -> None:
        del places
        self.partials = {}

    replace(MessageReassembler, "move", move)


@broken(MessageReassembler, "keeps sources at their places of the view before")
def _keeps_places() -> None:
    replace(MessageReassembler, "move", lambda *_: None)


@broken(Stream, "drops what comes early")
def _drops_what_is_early() -> None:
    def take(self: Stream, datagram: Any, now: int) -> Any:
        return [datagram] if self.expected < 0 or datagram.counter >= self.expected else None

    replace(Stream, "take", take)


@broken(Stream, "hands over what comes twice")
def _hands_over_twice() -> None:
    replace(Stream, "take", lambda _, datagram, __: [datagram])
    replace(ReplayWindow, "is_new", lambda *_: True)


@broken(Stream, "never releases what it holds")
def _holds_for_ever() -> None:
    replace(Stream, "release", lambda *_: [])


@broken(LinkReceiver, "never hands over what waited for an earlier datagram")
def _nothing_follows() -> None:
    replace(LinkReceiver, "_following", lambda _: [])


@broken(LinkReceiver, "acknowledges what it does not have")
def _acknowledges_all() -> None:
    def acknowledgment(self: LinkReceiver, now: float) -> Any:
        del now
        self.unacknowledged, self.is_urgent = 0, False
        return (0, max(self._latest, 0)), 0, self._next

    replace(LinkReceiver, "acknowledgment", acknowledgment)


@broken(LinkSender, "sends nothing again")
def _sends_nothing_again() -> None:
    replace(LinkSender, "_send_again", lambda *_: None)
    replace(LinkSender, "_probe", lambda *_: None)


@broken(Packer, "loses one record in fifty")
def _loses_records() -> None:
    wrap(Packer, "add", lambda add: _now_and_then(add, lambda *_: None, 50))


@broken(Gathering, "never passes on what waits")
def _never_passes_on() -> None:
    replace(Gathering, "release", lambda *_, **__: None)


@broken(Relay, "passes nothing on")
def _passes_nothing_on() -> None:
    replace(Relay, "_pass_on", lambda *_: None)
    replace(Relay, "_pass_on_all", lambda *_, **__: None)


# --- what an application is handed and told ---


@broken(Outbox, "loses what has to be sent again")
def _loses_what_is_put_back() -> None:
    replace(Outbox, "put_back", lambda *_: None)


@broken(Outbox, "puts what has to be sent again at the end")
def _puts_back_at_the_end() -> None:
    def put_back(self: Outbox, batches: Sequence[OutgoingBatch]) -> None:
        for batch in batches:
            self._append(batch)

    replace(Outbox, "put_back", put_back)


@broken(OutgoingBatch, "tells one level more than is reached")
def _tells_early() -> None:
    wrap(OutgoingBatch, "reached", lambda reached: lambda self, level: reached(self, level + 1))


@broken(OutgoingBatch, "does not tell who waits that it is lost")
def _tells_no_loss() -> None:
    replace(OutgoingBatch, "give_up", lambda *_: None)


@broken(OwnBatches, "tells no level above accepted")
def _tells_no_level() -> None:
    replace(OwnBatches, "reached", lambda *_: None)


@broken(OwnBatches, "counts each packet twice")
def _counts_twice() -> None:
    def around(numbered: Callable[..., bool]) -> Callable[..., bool]:
        def counted(self: OwnBatches, packet: Any) -> bool:
            self._counts.sent += len(packet.lengths)
            return numbered(self, packet)

        return counted

    wrap(OwnBatches, "numbered", around)


@broken(Inbox, "counts nothing that it is given")
def _counts_nothing() -> None:
    replace(Inbox, "delivered", property(lambda _: {}))  # type: ignore[arg-type]


@broken(Inbox, "loses one packet in thirty")
def _loses_packets() -> None:
    wrap(Inbox, "put", lambda put: _now_and_then(put, lambda *_: None, 30))


@broken(Inbox, "hands a packet out twice, one in thirty")
def _hands_out_twice() -> None:
    def around(put: Callable[..., Any]) -> Callable[..., Any]:
        def twice(self: Inbox, packet: Any) -> None:
            put(self, packet)
            put(self, packet)

        return _now_and_then(put, twice, 30)

    wrap(Inbox, "put", around)


# --- flow and congestion ---


@broken(FlowControl, "waits for ever when somebody was slow")
def _never_opens() -> None:
    replace(FlowControl, "_open", lambda _: None)


@broken(FlightWindow, "lets nothing be in flight")
def _nothing_in_flight() -> None:
    def around(init: Callable[..., None]) -> Callable[..., None]:
        def begin(self: FlightWindow) -> None:
            init(self)
            self.limit = 0

        return begin

    wrap(FlightWindow, "__init__", around)


# --- the table ---


class Found(NamedTuple):
    """What became of one machine."""

    case: Broken
    groups: int
    """How many were drawn until one failed; 0: none did."""
    how: str


def tried(number: int, seeds: int) -> Found:
    """Draws groups until one fails; in a process of its own."""
    logging.disable(logging.CRITICAL)
    case = BROKEN[number]
    case.change()
    for seed in range(seeds):
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(_LONGEST)
        try:
            failures = run_plan(draw(seed)).failures
        except TimeoutError:
            return Found(case, seed + 1, "does not end")
        except Exception as error:  # the harness, or what it calls, met what cannot be
            return Found(case, seed + 1, f"{type(error).__name__}")
        finally:
            signal.alarm(0)
        if failures:
            return Found(case, seed + 1, failures[0].kind)
    return Found(case, 0, "")


def _too_long(*_: object) -> None:
    raise TimeoutError


def results(numbers: Sequence[int], seeds: int) -> Iterator[Found]:
    """Of one machine after the other, each in a process forked for it."""
    for number in numbers:
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            yield pool.submit(tried, number, seeds).result()


def main() -> int:
    """0: all were noticed; 1: one was not."""
    parser = argparse.ArgumentParser(prog="python -m tests.live_harness.broken")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="groups that are drawn for each at most")
    parser.add_argument("--only", nargs="+", help="of these machines")
    asked = parser.parse_args()
    numbers = [number for number, case in enumerate(BROKEN) if not asked.only or case.machine in asked.only]
    missed = 0
    sys.stdout.write("| machine | what is wrong with it | groups | noticed as |\n|---|---|---|---|\n")
    for case, groups, how in results(numbers, asked.seeds):
        missed += not groups
        sys.stdout.write(f"| `{case.machine}` | {case.name} | {groups or '–'} | {how or '✗'} |\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
