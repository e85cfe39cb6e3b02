"""The sequencer's broadcast: Figures 6 and 7, packets and interrupts for each broadcast.

Paper: M. F. Kaashoek, A. S. Tanenbaum, S. Flynn Hummel and H. E. Bal, "An Efficient Reliable Broadcast Protocol".

The prototype of 1989 ran on ten 16 MHz MC68020s and an Ethernet of 10 Mbit/s. Three numbers describe it here. A null
message is a frame of 72 bytes with its preamble, which take 58 µs. What it costs a node to take one in follows from
Figure 6: each node more adds 25 µs to a broadcast, which is one dummy message after ten broadcasts, so 250 µs. What it
costs to send one is the rest of the 1.32 ms that a message takes to the sequencer and back to its sender: 352 µs.
Figure 7 is then computed, not fitted. The rules are the printed ones with the readings that the prototype must have
had.
"""

from ordercast.evaluation import formulas
from ordercast.evaluation.claims import follows, needs_less
from ordercast.evaluation.experiment import Curve, CurvePoint, Experiment, Size, Value, reference
from ordercast.evaluation.results import Axis, Role, Series
from ordercast.evaluation.values import over_runs, packets_per_message, per_sent, rate_together, time_per_message
from ordercast.model.config import (
    MICROSECOND,
    MILLISECOND,
    GroupConfig,
    PaperRules,
    Rules,
    SequencerConfig,
    SequencerReadings,
    Timing,
)
from ordercast.model.runs import Channel, Network, Pattern, RunConfig, TraceDetail, Workload

_PAPER = "Kaashoek, Tanenbaum, Flynn Hummel, Bal"
FIGURE_6 = {2: 1.32, 3: 1.35, 4: 1.38, 5: 1.40, 6: 1.43, 7: 1.45, 8: 1.48, 9: 1.50, 10: 1.53}
"""By nodes: the delay of a broadcast in milliseconds."""
FIGURE_7 = {2: 1333, 3: 1428, 4: 1538, 5: 1562, 6: 1500, 7: 1521}
"""By senders in a group of ten, one of them at the sequencer's node: broadcasts per second."""

NCN = {4: 24.8}
"""By nodes: the delay of a broadcast of Navaratnam, Chanson and Neufeld on the V-system, which the paper quotes."""
CHANG_MAXEMCHUK = 3
"""Packets for each broadcast, at most, as the paper counts them: 2, and 1 more if nothing else passes the token on."""

HISTORY = 20
NULL_MESSAGE = 46  # with our header 72 bytes: the shortest frame of an Ethernet and its preamble
SEND_TIME = 352 * MICROSECOND
RECEIVE_TIME = 250 * MICROSECOND
_SETTING = (
    "The prototype as simulated: 10 Mbit/s, null messages of 72 bytes on the wire, 352 µs to send a "
    "packet and 250 µs to "
    "take one in (both from Figure 6), HISTORY_SIZE 20. Nothing is random, so there is one run for each point. "
)


def prototype(nodes: int, senders: tuple[int, ...], messages: int, dummy_after: int = HISTORY // 2) -> RunConfig:
    """Node 0 is the sequencer; each sender broadcasts without a pause, one message at a time."""
    readings = SequencerReadings(
        first_id=1, acknowledges_last=True, advances_own_row=True, older_are_duplicates=True, dummy_after=dummy_after
    )
    return RunConfig(
        protocol="sequencer",
        group=GroupConfig(
            nodes=nodes,
            rules=Rules.PAPER,
            window=1,
            timing=Timing.for_round_trip(20 * MILLISECOND),
            paper=PaperRules(sequencer=readings),
            sequencer=SequencerConfig(history=HISTORY),
        ),
        network=Network(
            channel=Channel.ONE,
            propagation=0,
            jitter=0,
            bits_per_second=10_000_000,
            send_time=SEND_TIME,
            receive_time=RECEIVE_TIME,
        ),
        workload=Workload(messages=messages, pattern=Pattern.EVERYBODY, senders=senders, size=NULL_MESSAGE),
        record=TraceDetail.NONE,
    )


def ours(nodes: int, messages: int) -> RunConfig:
    """The sound rules, one node that broadcasts without a pause, datagrams."""
    return RunConfig(
        protocol="sequencer",
        group=GroupConfig(nodes=nodes, window=1, sequencer=SequencerConfig(history=HISTORY)),
        network=Network(channel=Channel.ANY),
        workload=Workload(messages=messages, pattern=Pattern.EVERYBODY, senders=(nodes - 1,), size=NULL_MESSAGE),
        record=TraceDetail.NONE,
    ).with_default_timeouts()


def figure_6(size: Size) -> Experiment:
    """The delay of a broadcast, by the size of the group."""
    ns = tuple(FIGURE_6) if size is not Size.TINY else (2, 4, 10)
    messages = size.pick(1000, 300, 60)
    spots = tuple(CurvePoint(n, (prototype(n, (n - 1,), messages),)) for n in ns)
    return Experiment(
        name="sequencer-figure6",
        protocol="sequencer",
        source=f"{_PAPER}, Figure 6",
        title="Delay of a broadcast, one node sending continuously",
        x=Axis("nodes"),
        y=Axis("delay", "ms"),
        curves=(Curve("delay", "simulated prototype", spots, over_runs(time_per_message)),),
        references=(
            reference("figure", "Figure 6", Role.PUBLISHED, FIGURE_6, of="delay"),
            reference(
                "line",
                "1.32 ms + 25 µs for each node more",
                Role.PRINTED,
                {n: formulas.broadcast_delay(n) for n in FIGURE_6},
                of="delay",
            ),
            reference("ncn", "Navaratnam, Chanson and Neufeld, as quoted", Role.PUBLISHED, NCN),
        ),
        claims=(
            follows("delay", "figure", within=0.03),
            follows("delay", "line", within=0.03),
            needs_less("delay", "ncn", what="delay"),
        ),
        setting=_SETTING + f"{messages:,} broadcasts by a node that is not the sequencer.",
    )


def figure_7(size: Size) -> Experiment:
    """Broadcasts per second, by the number of senders."""
    counts = tuple(FIGURE_7) if size is not Size.TINY else (2, 7)
    messages = size.pick(400, 150, 40)

    def curve(name: str, label: str, dummy_after: int) -> Curve:
        spots = tuple(
            CurvePoint(senders, (prototype(10, tuple(range(senders)), messages, dummy_after),)) for senders in counts
        )
        return Curve(name, label, spots, over_runs(rate_together))

    return Experiment(
        name="sequencer-figure7",
        protocol="sequencer",
        source=f"{_PAPER}, Figure 7",
        title="Broadcasts per second under heavy load, in a group of ten",
        x=Axis("senders"),
        y=Axis("broadcasts per second"),
        curves=(
            curve("early", "simulated, dummies after 10", HISTORY // 2),
            curve("late", "simulated, dummies after 20", HISTORY),
        ),
        references=(reference("figure", "Figure 7", Role.PUBLISHED, FIGURE_7, of="early"),),
        claims=(
            follows(
                "early",
                "figure",
                within=0.15,
                otherwise="The sequencer's processor is the bottleneck, and what it cost is known from Figure 6 only.",
            ),
            follows(
                "late",
                "figure",
                within=0.15,
                otherwise="With dummies only after a whole history, the history fills up and "
                "synchronization phases stop everybody.",
            ),
        ),
        setting=_SETTING
        + f"{messages} broadcasts by each sender; counted while all were sending. One sender is at the sequencer's "
        "node.",
    )


_NS = (2, 4, 6, 8, 10, 16, 20)


def _curves(value: Value, size: Size) -> tuple[Curve, Curve]:
    """One node that broadcasts without a pause: the printed rules, and ours."""
    messages = size.pick(1000, 200, 60)
    ns = _NS if size is not Size.TINY else (4, 10)
    printed = tuple(CurvePoint(n, (prototype(n, (n - 1,), messages, HISTORY),)) for n in ns)
    sound = tuple(CurvePoint(n, (ours(n, messages),)) for n in ns)
    return Curve("printed", "printed rules", printed, value), Curve("sound", "our rules", sound, value)


def packets(size: Size) -> Experiment:
    """Packets for each broadcast."""
    return Experiment(
        name="sequencer-packets",
        protocol="sequencer",
        source=f"{_PAPER}, section 4",
        title="Packets for each broadcast, one node sending continuously (HISTORY_SIZE 20)",
        x=Axis("nodes, n"),
        y=Axis("packets for each broadcast"),
        curves=_curves(over_runs(packets_per_message), size),
        references=(
            reference(
                "formula",
                "n/HISTORY_SIZE + 2",
                Role.PRINTED,
                {n: formulas.packets_per_broadcast(n, HISTORY) for n in _NS},
                of="printed",
            ),
            reference(
                "counted",
                "2 + (n − 2)/20, dummies of all but sender and sequencer",
                Role.CORRECTED,
                {n: formulas.packets_with_dummies(n, HISTORY) for n in _NS},
                of="printed",
            ),
            reference("said", "2.5, from the text", Role.PUBLISHED, {10: 2.5}, of="printed"),
            reference("cm", "3, the most of Chang and Maxemchuk", Role.PRINTED, dict.fromkeys(_NS, CHANG_MAXEMCHUK)),
        ),
        claims=(
            follows("printed", "said", within=0.05),
            follows("printed", "formula", within=0.05),
            follows("printed", "counted", within=0.05),
            follows("sound", "formula", within=0.05, otherwise="Ours acknowledge when asked or after a while."),
            needs_less("printed", "cm", what="packets"),
        ),
        setting=f"One node that is not the sequencer broadcasts continuously; HISTORY_SIZE {HISTORY}, "
        f"printed rules with dummies "
        f"after {HISTORY} messages. A packet to everybody counts once. Nothing is lost.",
    )


def interrupts(size: Size) -> Experiment:
    """Interrupts for each broadcast."""
    expected = {n: formulas.interrupts(n) for n in _NS}

    def said(name: str, label: str, key: str) -> Series:
        role = Role.PRINTED
        return reference(
            name, label, role, {n: expected[n][key] for n in _NS}, of="printed" if key == "sequencer" else ""
        )

    return Experiment(
        name="sequencer-interrupts",
        protocol="sequencer",
        source=f"{_PAPER}, sections 2 and 4",
        title="Interrupts for each broadcast",
        x=Axis("nodes, n"),
        y=Axis("interrupts for each broadcast"),
        curves=_curves(per_sent("interrupts"), size),
        references=(
            said("n", "n, as the paper counts", "sequencer"),
            said("cm", "2(n − 1), Chang and Maxemchuk", "chang_maxemchuk"),
            said("rpc", "3(n − 1), remote calls", "rpc"),
        ),
        claims=(
            follows("printed", "n", within=0.15, otherwise="Dummies and synchronization come on top."),
            follows("sound", "n", within=0.15, otherwise="Acknowledgments come on top."),
            needs_less("printed", "cm", what="interrupts"),
            needs_less("printed", "rpc", what="interrupts"),
        ),
        setting="The same runs. An interrupt is a packet that reaches a node from the network.",
    )
