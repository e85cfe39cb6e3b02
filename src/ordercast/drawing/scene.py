"""From event rows to the elements of a picture, before the layout.

A scene holds flights (one transmission and its arrivals) and moments (what one node did at one instant, in its own
order). Rows that say one thing twice are shown once: a `send` at the instant of its own transmission is that
transmission's label, an `ack` that delivers is the delivery, `request` and `retransmit` are the units they cause.
A timer that fires and changes nothing is not shown.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeAlias

from ordercast.drawing.destination_labels import DestinationLabel
from ordercast.model.config import require

MOST_TRANSMISSIONS = 400
MOST_NODES = 16

Row: TypeAlias = tuple[
    int,  # node
    int,  # step
    int,  # time, in nanoseconds
    str,  # event
    int | None,  # source
    int | None,  # seq
    Sequence[int] | None,  # destinations
    int | None,  # priority
    int | None,  # size
    str | None,  # detail
    int | None,  # transmission
]

MessageName: TypeAlias = tuple[int, int]
"""Source and number of a message."""

Names: TypeAlias = Mapping[MessageName, str]
"""What messages are called that have names."""


class Event(NamedTuple):
    """A row, its columns by name."""

    node: int
    step: int
    time: int
    event: str
    source: int | None
    seq: int | None
    destinations: Sequence[int] | None
    priority: int | None
    size: int | None
    detail: str | None
    transmission: int | None

    def messages(self) -> tuple[MessageName, ...]:
        """The message that it names, if any."""
        return () if self.source is None or self.seq is None else ((self.source, self.seq),)


@dataclass(frozen=True, slots=True)
class DrawnArrival:
    """The arrival of a transmission at a node, or its loss."""

    node: int
    time: int
    lost: bool
    why: str


@dataclass(frozen=True, slots=True)
class DrawnTransmission:
    """One transmission: a unit that a node put on the channel, and its arrivals and losses."""

    number: int
    node: int
    time: int
    kind: str
    """data, copy, status, poll, request or control."""
    messages: tuple[MessageName, ...]
    note: str
    """Of data sent at this instant: the destinations; of a request: what it asks for."""
    arrivals: tuple[DrawnArrival, ...]
    names: Names = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """Its label on arrows: its messages, what it asks for, or its kind."""
        return " ".join(spans(self.messages, self.names)) or self.note or self.kind

    @property
    def label(self) -> str:
        """Its label at the sender."""
        return {"copy": f"copy {self.name}", "data": self.name + self.note}.get(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a node, with all messages that it concerns at that instant."""

    event: str
    messages: tuple[MessageName, ...]
    note: str
    names: Names = field(default_factory=dict, compare=False)

    def lines(self) -> tuple[str, ...]:
        """The words beside it, line by line."""
        names = spans(self.messages, self.names)
        if self.event == "send":
            return (" ".join(names) + self.note,)
        return (*names, self.note) if self.note else tuple(names)


@dataclass(frozen=True, slots=True)
class DrawnMoment:
    """What happened at one node at one instant."""

    node: int
    time: int
    arrivals: tuple[tuple[DrawnTransmission, DrawnArrival], ...]
    doings: tuple[Mark | DrawnTransmission, ...]
    """Its own marks and transmissions, in the node's order."""

    def fate(self, flight: DrawnTransmission) -> Mark | None:
        """The immediate effect of a unit that arrived now; None for one without messages."""
        for doing in self.doings:
            if isinstance(doing, Mark) and doing.event in FATES and set(doing.messages) & set(flight.messages):
                return doing
        return None


@dataclass(frozen=True, slots=True)
class Scene:
    """The elements of a picture."""

    nodes: int
    flights: tuple[DrawnTransmission, ...]
    """In the order transmitted."""
    moments: tuple[DrawnMoment, ...]
    """Ascending by time, then node."""
    flight_time: int
    """The typical flight time of a unit, which scales the time axis; at least 1."""
    steps: bool = False
    """Time counts steps, rather than nanoseconds."""
    named: bool = False
    """Messages have names, rather than numbers."""

    @property
    def unit(self) -> str:
        """What times are given in."""
        return "step" if self.steps else "µs"

    def when(self, time: int, digits: int = 1) -> str:
        """A time in that unit."""
        return str(time) if self.steps else microseconds(time, digits)

    def instants(self) -> list[int]:
        """The times at which anything happened, ascending."""
        return sorted({moment.time for moment in self.moments})

    def is_idle(self, gap: int) -> bool:
        """True if a time of this length without events is cut."""
        return gap > 2 * self.flight_time

    def crashes(self) -> dict[int, int]:
        """When each node that stopped did so."""
        return {
            moment.node: moment.time
            for moment in reversed(self.moments)
            for doing in moment.doings
            if isinstance(doing, Mark) and doing.event == "crash"
        }


FOREIGN = "foreign"
"""The mark of a message that arrived where it was not addressed: a harmless discard."""
FATES = ("receive", "accept", "discard", FOREIGN)
"""The immediate effects of a message that arrives; `receive`: it is kept for later."""
_MARKS = frozenset(
    {
        "send",
        "receive",
        "accept",
        "preack",
        "ack",
        "deliver",
        "discard",
        "timeout",
        "stop",
        "resume",
        "abort",
        "view",
        "crash",
    }
)
_NOTED = frozenset(
    {"discard", "timeout", "stop", "resume", "abort", "view"}
)  # whose detail is worth words in the picture
_OF_A_UNIT = frozenset({"transmit", "receive", "hear", "lose"})


def spans(messages: Iterable[MessageName], names: Names) -> list[str]:
    """Names of messages, in their order; without them numbers, a row of one source's as one: 1.0–3 is 0 to 3 of E1."""
    if names:
        return [names.get((source, seq), f"{source + 1}.{seq}") for source, seq in dict.fromkeys(messages)]
    stretches: list[list[int]] = []
    for source, seq in sorted(set(messages)):
        if stretches and stretches[-1][0] == source and stretches[-1][2] == seq - 1:
            stretches[-1][2] = seq
        else:
            stretches.append([source, seq, seq])
    return [f"{source + 1}.{low}" if low == high else f"{source + 1}.{low}–{high}" for source, low, high in stretches]


def microseconds(time: int, digits: int = 1) -> str:
    """A time in microseconds, cut (not rounded) to one to three digits."""
    return f"{time // 1000}.{time % 1000:03}"[: digits - 3 or None]


def make_scene(rows: Iterable[Row], nodes: int, names: Names | None = None, *, steps: bool = False) -> Scene:
    """The scene of these rows. Raises `ConfigError` if the run is too large to be drawn."""
    names = names or {}
    events = sorted((Event(*row) for row in rows), key=lambda event: (event.time, event.node, event.step))
    _refuse_what_cannot_be_drawn(events, nodes)
    addresses = {
        message: DestinationLabel(tuple(sorted(event.destinations or ())), event.priority)
        for event in events
        if event.event == "send"
        for message in event.messages()
    }
    flights = _with_dead_ends(_flights(events, addresses, nodes, names), events)
    moments = _moments(events, flights, addresses, nodes, names)
    usual = _usual_flight_time(flights.values(), moments)
    return Scene(nodes, tuple(flights.values()), moments, usual, steps, bool(names))


def _usual_flight_time(flights: Iterable[DrawnTransmission], moments: Sequence[DrawnMoment]) -> int:
    """The median; where units take no time or there are none, the median time between events instead."""
    under_way = [arrival.time - flight.time for flight in flights for arrival in flight.arrivals]
    between = [later.time - earlier.time for earlier, later in pairwise(moments)]
    measures = [time for time in under_way if time > 0] or [time for time in between if time > 0]
    return int(median(measures or [1]))


def require_drawable(nodes: int, transmissions: int) -> None:
    """Raises `ConfigError` if a run with this number of transmissions is too large to be drawn."""
    require(2 <= nodes <= MOST_NODES, f"a picture shows 2 to {MOST_NODES} nodes, not {nodes}: draw a smaller group")
    require(
        transmissions <= MOST_TRANSMISSIONS,
        f"the run is too large to be drawn: it has {transmissions} transmissions or more, and a picture shows at most "
        f"{MOST_TRANSMISSIONS}; take fewer messages or fewer nodes",
    )


def _refuse_what_cannot_be_drawn(events: Sequence[Event], nodes: int) -> None:
    require_drawable(nodes, len({event.transmission for event in events if event.event == "transmit"}))
    strange = next((event.node for event in events if not 0 <= event.node < nodes), None)
    require(strange is None, f"an event is of node {strange}, but the picture is of nodes 0 to {nodes - 1}")


def _flights(
    events: Sequence[Event], addresses: Mapping[MessageName, DestinationLabel], nodes: int, names: Names
) -> dict[int | None, DrawnTransmission]:
    """The transmissions by their numbers."""
    rows_of: dict[int, list[Event]] = defaultdict(list)
    asked: dict[int, list[Event]] = defaultdict(list)
    requests: dict[int, list[Event]] = {}
    sent_at: dict[MessageName, int] = {}
    for event in events:
        if event.event == "send":
            sent_at.update(dict.fromkeys(event.messages(), event.time))
        elif event.event == "request":
            asked[event.node].append(event)
        elif event.event in _OF_A_UNIT and event.transmission is not None:
            rows_of[event.transmission].append(event)
            if event.event == "transmit" and event.detail == "request":
                requests[event.transmission] = asked.pop(event.node, [])
    flights: dict[int | None, DrawnTransmission] = {}
    for number, rows in rows_of.items():
        start = next((row for row in rows if row.event == "transmit"), None)
        if start is None:
            continue  # the recording began while it was in flight
        kind = start.detail or "control"
        carried = tuple(sorted({message for row in rows for message in row.messages()}))
        note = _what_is_asked(requests.get(number, ()), names) if kind == "request" else ""
        if kind == "data" and carried and all(sent_at.get(message) == start.time for message in carried):
            note = addresses[carried[0]].note(start.node, nodes)
        arrivals = {
            (row.node, row.time): DrawnArrival(row.node, row.time, row.event == "lose", row.detail or "")
            for row in rows
            if row.event != "transmit"
        }
        flights[number] = DrawnTransmission(
            number, start.node, start.time, kind, carried, note, tuple(arrivals.values()), names
        )
    return flights


def _what_is_asked(requests: Sequence[Event], names: Names) -> str:
    """The label of a request: the messages that it names, or the words that it came with."""
    named = spans((message for request in requests for message in request.messages()), names)
    words = [request.detail for request in requests if request.detail and not request.messages()]
    return " ".join(["asks", *named, *words]) if named or words else "request"


def _with_dead_ends(
    flights: dict[int | None, DrawnTransmission], events: Sequence[Event]
) -> dict[int | None, DrawnTransmission]:
    """The flights; data and copies that would have reached a crashed node are lost there.

    A trace does not record them. A unit that reached two or more other nodes was sent to all.
    """
    crashed = {event.node: event.time for event in events if event.event == "crash"}
    found = dict(flights)
    for number, flight in flights.items():
        reached = {arrival.node for arrival in flight.arrivals}
        if flight.kind in {"data", "copy"} and len(reached - {flight.node}) > 1:
            usual = int(median(arrival.time for arrival in flight.arrivals))
            dead = [
                node for node, time in crashed.items() if node not in reached and node != flight.node and time <= usual
            ]
            ends = tuple(DrawnArrival(node, usual, lost=True, why="crashed") for node in dead)
            found[number] = replace(flight, arrivals=(*flight.arrivals, *ends))
    return found


def _moments(
    events: Sequence[Event],
    flights: dict[int | None, DrawnTransmission],
    addresses: Mapping[MessageName, DestinationLabel],
    nodes: int,
    names: Names,
) -> tuple[DrawnMoment, ...]:
    """What each node did at each instant, like marks joined."""
    doings: dict[tuple[int, int], dict[object, Mark | DrawnTransmission]] = defaultdict(dict)
    arrivals: dict[tuple[int, int], list[tuple[DrawnTransmission, DrawnArrival]]] = defaultdict(list)
    for flight in flights.values():
        for arrival in flight.arrivals:
            arrivals[arrival.time, arrival.node].append((flight, arrival))
    shown = {(message, flight.time) for flight in flights.values() if flight.note for message in flight.messages}
    did = {(event.node, event.time, event.messages(), event.event) for event in events}
    for event in events:
        here = doings[event.time, event.node]
        here_and_now = event.node, event.time, event.messages()
        if event.event == "transmit" and event.transmission in flights:
            here[event.transmission] = flights[event.transmission]
        repeats = (
            (event.event == "send" and all((message, event.time) in shown for message in event.messages()))
            or (event.event == "ack" and (*here_and_now, "deliver") in did)
            or (event.event == "receive" and {(*here_and_now, "accept"), (*here_and_now, "discard")} & did)
        )
        if event.event in _MARKS and not repeats:
            mark = replace(_mark(event, addresses, nodes), names=names)
            key = _joinable(here, mark)
            before = here.get(key)
            joined = before.messages if isinstance(before, Mark) else ()
            here[key] = replace(mark, messages=(*joined, *mark.messages))
    moments = []
    for time, node in sorted({*doings, *arrivals}):
        done = _without_idle_timers(tuple(doings[time, node].values()))
        if done or arrivals[time, node]:
            moments.append(DrawnMoment(node, time, tuple(arrivals[time, node]), done))
    return tuple(moments)


def _joinable(here: dict[object, Mark | DrawnTransmission], mark: Mark) -> object:
    """The place of a mark among those of its moment: with an equal one, unless its messages did more in between."""
    for key, doing in reversed(here.items()):
        if isinstance(doing, Mark):
            if (doing.event, doing.note) == (mark.event, mark.note):
                return key
            if set(doing.messages) & set(mark.messages):
                break
    return (mark.event, mark.note, len(here))


def _without_idle_timers(doings: tuple[Mark | DrawnTransmission, ...]) -> tuple[Mark | DrawnTransmission, ...]:
    """Without timers that changed nothing, and without the name of one that the unit it sent has as well."""
    kinds = {doing.kind for doing in doings if isinstance(doing, DrawnTransmission)}
    timers = {doing for doing in doings if isinstance(doing, Mark) and doing.event == "timeout"}
    if timers == set(doings):
        return ()
    return tuple(
        Mark(doing.event, (), "") if isinstance(doing, Mark) and doing in timers and doing.note in kinds else doing
        for doing in doings
    )


def _mark(event: Event, addresses: Mapping[MessageName, DestinationLabel], nodes: int) -> Mark:
    """The mark of one event."""
    addressed = [addresses[message] for message in event.messages() if message in addresses]
    if event.event == "discard" and addressed and event.node not in addressed[0].destinations:
        return Mark(FOREIGN, event.messages(), "")
    if event.event == "send":
        note = "".join(address.note(event.node, nodes) for address in addressed)
    else:
        note = (event.detail or "") if event.event in _NOTED else ""
    return Mark(event.event, event.messages(), note)
