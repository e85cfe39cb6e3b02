"""Random runs, good ones and ones that break something, to hold one audit against another.

A run is made good first: its messages in one order (or in none, where the service asks for none), its levels as
late as they must be. Then a few of its events are swapped, taken out, repeated, moved or renamed.
"""

from dataclasses import dataclass, field
from random import Random

import pyarrow as pa

from ordercast.audit.logs import COLUMNS
from ordercast.model.services import SELECTIVE, Service
from ordercast.trace.arrow_schema import EVENTS
from ordercast.trace.schema import EventField
from tests.audit.figures import Row

Message = tuple[int, int]
Happening = tuple[int, str, Message | None, tuple[int, ...] | None, int | None]
"""time, event, message, destinations, priority."""

ORDERED = frozenset({Service.SELECTIVE_TOTAL, Service.TOTAL, Service.PRIORITY_TOTAL, Service.SEQUENCED})
BREAKAGES = (
    *("swap", "swap", "near", "lose", "lose", "twice", "rename", "unsent", "time", "crash", "abort", "view"),
    *("cut", "foreign", "priority", "aborted", "again", "unnamed"),
)
PRIORITISED = frozenset({Service.PRIORITY, Service.PRIORITY_TOTAL})


@dataclass
class RandomRun:
    """What happened at each node, in its order."""

    service: Service
    nodes: int
    logs: list[list[Happening]] = field(default_factory=list)
    aborted: bool = False
    uniform: bool = False

    def rows(self) -> list[Row]:
        """The events of all nodes, as they would be written: by time."""
        found: list[Row] = []
        for node, log in enumerate(self.logs):
            for step, (time, event, message, to, priority) in enumerate(log):
                source, seq = message or (None, None)
                found.append((node, step, time, event, source, seq, to, priority))
        return sorted(found, key=lambda row: (row[EventField.TIME], row[EventField.NODE], row[EventField.STEP]))


def batch_of(rows: list[Row], run: str = "r") -> pa.RecordBatch:
    """Rows as a trace holds them."""
    named = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True)) if rows else {}
    arrays = [
        pa.array([run] * len(rows) if name == "run" else named.get(name, [None] * len(rows)), EVENTS.field(name).type)
        for name in EVENTS.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EVENTS)


def random_run(chance: Random, service: Service, *, levels: bool | None = None, messages: int = 12) -> RandomRun:
    """A run in which everything holds that the service promises."""
    nodes = chance.randint(1, 4)
    everybody = tuple(range(nodes))
    run = RandomRun(service, nodes, [[] for _ in everybody], uniform=chance.random() < 0.5)
    has_levels = chance.random() < 0.5 if levels is None else levels
    sent = _messages(chance, run, chance.randint(0, messages))
    clock = 0
    accepted_at: dict[tuple[int, int], int] = {}
    at: list[tuple[int, int, int, Happening]] = []  # time, node, number, what

    def add(time: int, node: int, event: str, message: Message, *about: tuple[int, ...] | int | None) -> None:
        to, priority = about or (None, None)
        at.append((time, node, len(at), (time, event, message, to, priority)))  # type: ignore[arg-type]

    for message, to, priority in sent:
        clock += chance.randint(1, 3)
        add(clock, message[0], "send", message, to, priority)
        if has_levels:
            addressed = to if service in SELECTIVE else everybody
            time = clock + 1
            for node in addressed:
                early = max(clock + chance.randint(1, 4), accepted_at.get((message[0], node), 0) + 1)
                if node != message[0] or chance.random() < 0.3:
                    add(early, node, "receive", message)
                accepted_at[message[0], node] = early + 1
                add(early + 1, node, "accept", message)
                time = max(time, early + 1)
            for event in ("preack", "ack"):
                time += chance.randint(1, 3)
                for node in addressed:
                    add(time, node, event, message)
    end = max((time for time, *_ in at), default=0) + 1
    for number, node, message in _deliveries(chance, run, sent):
        add(end + number, node, "deliver", message)
    for _, node, _, what in sorted(at):
        run.logs[node].append(what)
    return run


def long_enough(seed: str) -> RandomRun:
    """A run of some hundred events of at least three nodes, in one order."""
    chance = Random(seed)
    while True:
        run = random_run(chance, Service.TOTAL, levels=False, messages=80)
        if run.nodes >= 3 and len(run.logs[0]) > 60:
            return run


Sent = tuple[Message, tuple[int, ...], int | None]


def _messages(chance: Random, run: RandomRun, count: int) -> list[Sent]:
    counts = [0] * run.nodes
    sent: list[Sent] = []
    for _ in range(count):
        source = chance.randrange(run.nodes)
        to = tuple(node for node in range(run.nodes) if chance.random() < 0.6)
        to = to if run.service in SELECTIVE else tuple(range(run.nodes))
        priority = chance.randint(0, 2) if run.service in PRIORITISED else None
        sent.append(((source, counts[source]), to, priority))
        counts[source] += 1 if chance.random() < 0.9 else 3  # numbers with holes, as from elsewhere
    return sent


def _deliveries(chance: Random, run: RandomRun, sent: list[Sent]) -> list[tuple[int, int, Message]]:
    found = []
    one_order = _some_order(chance, run, sent)
    for node in range(run.nodes):
        order = one_order if run.service in ORDERED | PRIORITISED else _some_order(chance, run, sent)
        if run.service is Service.PRIORITY:
            order = _within_runs(chance, order)
        for number, (message, to, _) in enumerate(order):
            if node in to or run.service not in SELECTIVE:
                found.append((number, node, message))
    return found


def _some_order(chance: Random, run: RandomRun, sent: list[Sent]) -> list[Sent]:
    """An order that keeps each sender's, or each sender's of one priority."""
    order = chance.sample(sent, len(sent))
    keys = [(source, priority) for (source, _), _, priority in order]
    waiting = {key: iter(sorted(one for one in sent if (one[0][0], one[2]) == key)) for key in keys}
    return [next(waiting[key]) for key in keys]


def _within_runs(chance: Random, order: list[Sent]) -> list[Sent]:
    """The same priority runs, another order of different senders' neighbours of one priority."""
    order = list(order)
    for place in range(len(order) - 1):
        (one, _, priority), (other, _, other_priority) = order[place], order[place + 1]
        if priority == other_priority and one[0] != other[0] and chance.random() < 0.5:
            order[place], order[place + 1] = order[place + 1], order[place]
    return order


def break_somehow(chance: Random, run: RandomRun) -> None:
    """Does one thing to a run that may break a promise."""
    node = chance.randrange(run.nodes)
    log = run.logs[node]
    breakage = chance.choice(BREAKAGES)
    places = [place for place, what in enumerate(log) if what[1] not in {"send", "crash", "abort", "view"}]
    if breakage in {"crash", "abort", "view"}:
        to = tuple(other for other in range(run.nodes) if chance.random() < 0.7) if breakage == "view" else None
        time = log[-1][0] if log and chance.random() < 0.5 else 1_000
        log.insert(chance.choice([len(log), chance.randint(0, len(log))]), (time, breakage, None, to, None))
    elif breakage == "cut":  # a node that stopped was given a beginning only
        del log[chance.randint(0, len(log)) :]
        log.append((1_000, chance.choice(["crash", "abort"]), None, None, None))
    elif breakage == "aborted":
        run.aborted = True
    elif places:
        _break_log(chance, run, log, places, breakage)


def _break_log(chance: Random, run: RandomRun, log: list[Happening], places: list[int], breakage: str) -> None:
    place = chance.choice(places)
    time, event, message, to, priority = log[place]
    other = chance.choice(places)
    match breakage:
        case "swap":
            log[place], log[other] = (log[other][0], *log[place][1:]), (time, *log[other][1:])
        case "near":
            alike = [one for one in places if log[one][1] == event and one > place]
            if alike:
                log[place], log[alike[0]] = log[alike[0]], log[place]
        case "lose":
            del log[place]
        case "twice":
            log.insert(chance.randint(place, len(log)), log[place])
        case "rename":
            log[place] = (time, event, log[other][2], to, priority)
        case "unsent":
            log[place] = (time, event, (chance.randint(0, run.nodes), 99), to, priority)
        case "time":
            log[place] = (time + chance.randint(-6, 6), event, message, to, priority)
        case "foreign":
            elsewhere = chance.choice(run.logs)
            elsewhere.append((2_000, event, message, None, None))
        case _:
            _break_send(chance, log, breakage)


def _break_send(chance: Random, log: list[Happening], breakage: str) -> None:
    sends = [one for one, what in enumerate(log) if what[1] == "send"]
    if sends:
        one = chance.choice(sends)
        if breakage == "again":
            log.append(log[one])
        elif breakage == "unnamed":
            log[one] = (*log[one][:3], (log[one][3] or ())[:-1], log[one][4])
        elif log[one][4] is not None:
            log[one] = (*log[one][:4], chance.randint(0, 2))
