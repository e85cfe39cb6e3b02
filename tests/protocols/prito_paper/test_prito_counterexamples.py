"""Where the printed PriTO fails, each told once: as stated under those rules, and to a good end under the sound ones.

F1 to F6 are the names that the protocols' own pages use. CE1 and CE2 are two stories of F2, with their slots in the
golden file.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from ordercast.model.config import GroupConfig, PaperRules, PriorityConfig, PriorityReadings
from ordercast.model.machine import Input, Level, Output, Send
from ordercast.model.units import Packet
from ordercast.protocols.prito.delivery import PriorityOrder
from ordercast.protocols.prito.paper.machine import PritoPaper
from ordercast.protocols.prito.paper.state import Stage
from ordercast.protocols.prito.paper.units import RunSync
from ordercast.protocols.to.delivery import Deliveries
from ordercast.protocols.to.machine import TotalOrderBroadcast
from tests.protocols.one_channel import E1, E2, E3
from tests.protocols.prito_paper.group import GOLDEN, PaperGroup, PriorityChannel, SoundGroup, receipt_log

CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in GOLDEN["recovery"]}
OUT_OF_ORDER = {"same_order", "no_cycle"}

# --- F2: recovery undoes places by priority, and the nodes have delivered different beginnings ---


def test_ce1_the_loser_has_delivered_what_the_others_have_overtaken() -> None:
    """z is lost by E1 only. r1, sent without z, completes the acknowledgment of p, which is on top at E1 alone."""
    case = CASES["CE1"]
    group = PaperGroup(case["n"])
    group.play(case["slots"], case["lost"])
    assert group.together() == ["d0", ""]
    assert receipt_log(group, E2).startswith("d4 d0 ")
    group.recover(E2, [E2, E1])
    assert [machine.stage for machine in group.machines] == [Stage.NORMAL] * 2
    assert group.settle()
    assert group.together() == ["d0 d4", "d4 d0"]
    assert group.broken_promises() >= OUT_OF_ORDER


def test_ce2_what_completes_an_acknowledgment_is_lost_and_something_urgent_is_quicker() -> None:
    case = CASES["CE2"]
    group = PaperGroup(case["n"])
    group.play(case["slots"], case["lost"])
    assert group.together() == ["", "d0"]
    group.recover(E2, [E1, E2])
    assert group.settle()
    assert group.together() == ["d5 d0", "d0 d5"]
    assert group.broken_promises() >= OUT_OF_ORDER


def test_ce2_does_not_happen_if_the_original_order_is_kept() -> None:
    """Which the channel does not promise."""
    case = CASES["CE2"]
    group = PaperGroup(case["n"])
    group.play(case["slots"], case["lost"])
    group.recover(E2, [E2, E1])
    assert group.settle()
    assert group.together() == ["d0 d5", "d0 d5"]


@pytest.mark.parametrize("name", CASES)
def test_f2_ends_well_under_the_sound_rules(name: str) -> None:
    case = CASES[name]
    group = SoundGroup(case["n"])
    group.play(case["slots"], case["lost"])
    assert group.settle()
    assert group.delivered == case["normative+minreq"]["orig"]
    assert group.broken_promises() == set()


@pytest.mark.parametrize("lost", ["LOST E1", "LOST E2", "REJECTED E1", "REJECTED E2"])
def test_a_lost_unit_of_recovery_stops_the_group_for_good(lost: str) -> None:
    case = CASES["CE1"]
    group = PaperGroup(case["n"], priority=PriorityConfig(synchronises=False))
    group.play(case["slots"], case["lost"])
    hearer = E1 if lost.endswith("2") else E2
    group.settle(lossy=once(hearer, lost))
    assert group.missed == [(E1, "d4"), (hearer, lost)]
    stopped = [machine for machine in group.machines if machine.stage is not Stage.NORMAL]
    assert stopped
    assert group.together() == ["d0", ""]


@pytest.mark.parametrize("number", range(4))
def test_a_lost_unit_of_recovery_is_repeated_under_the_sound_rules(number: int) -> None:
    case = CASES["CE1"]
    group = SoundGroup(case["n"])
    group.play(case["slots"], case["lost"])
    label = ["EpochVector E1", "EpochVector E2"][number % 2]
    assert group.settle(lossy=once([E2, E1][number % 2], label, after=number // 2))
    assert label in [name for _, name in group.missed]
    assert group.delivered == case["normative+minreq"]["orig"]


def once(node: int, label: str, after: int = 0) -> Any:
    """One unit of a name is lost by one node, after so many others of that name."""
    left = [after]

    def lossy(hearer: int, heard: str) -> bool:
        if (hearer, heard) == (node, label):
            left[0] -= 1
            return left[0] == -1
        return False

    return lossy


# --- F1: when PACK and ACK run ---


class Lazy(PritoPaper):
    """PACK and ACK run when the application asks; nothing printed says when they do."""

    lazy = True

    def preacknowledge(self, below: list[int], out: list[Output]) -> None:
        if not self.lazy:
            super().preacknowledge(below, out)

    def asked(self) -> list[Output]:
        self.lazy = False
        out: list[Output] = []
        self.preacknowledge(self.accepted_minima(), out)
        self.acknowledge(out)
        return out


def test_f1_orders_depend_on_when_pack_and_ack_run() -> None:
    """Without any loss: the eager have delivered p before h came, the lazy have h before p."""
    (trace,) = [trace for trace in GOLDEN["traces_loss_free"] if trace["name"] == "T1"]
    eager, lazy = PaperGroup(trace["n"]), PaperGroup(trace["n"], machine=Lazy)
    for group in (eager, lazy):
        group.play(trace["slots"])
    machine = lazy.machines[E2]
    assert isinstance(machine, Lazy)
    assert machine.asked() != []
    assert eager.together() == ["d0", "d0"]
    assert receipt_log(eager, E2).startswith("d5 ")
    assert (lazy.together(), receipt_log(lazy, E2).split()[:2]) == (["", ""], ["d5", "d0"])


# --- F3: one's own units ---


def test_f3_who_accepts_its_own_units_when_it_sends_them_has_an_order_of_its_own() -> None:
    group = PaperGroup(2, paper=PaperRules(priority=PriorityReadings(accepts_own_at_once=True)))
    group.send(E1, "a")
    group.send(E2, "b")
    assert group.labels() == ["a", "b"]
    assert group.settle()
    assert group.together() == ["a b", "b a"]


def test_f3_who_waits_for_the_channel_has_that_of_the_others() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    group.send(E2, "b")
    assert group.settle()
    assert group.together() == ["a b", "a b"]


def test_f3_an_own_unit_that_is_lost_is_a_loss_like_any_other() -> None:
    group = PaperGroup(2)
    group.send(E1, "a")
    group.miss(E1, "a")
    assert group.settle()
    assert group.together() == ["a", "a"]
    assert group.copies == ["a"]


# --- F4: how many units are taken at once ---


class LooksOnce(PriorityOrder):
    """Puts off what is acknowledged until it is told."""

    put_off: list[Packet]

    def __init__(self, config: GroupConfig, deliveries: Deliveries) -> None:
        super().__init__(config, deliveries)
        self.put_off = []

    def acknowledge(self, packets: Sequence[Packet], out: list[Output]) -> None:
        del out
        self.put_off += packets

    def look(self, out: list[Output]) -> None:
        packets, self.put_off = self.put_off, []
        super().acknowledge(packets, out)


class TakesThemAtOnce(TotalOrderBroadcast):
    """The sound rules, but what is acknowledged is looked at once, after all that could be pre-acknowledged is."""

    def __init__(self, me: int, config: GroupConfig) -> None:
        super().__init__(me, config, LooksOnce)

    def handle(self, event: Input) -> list[Output]:
        out = super().handle(event)
        assert isinstance(self.policy, LooksOnce)
        self.policy.look(out)
        return out


def test_f4_what_is_taken_at_once_depends_on_losses_and_so_does_the_order() -> None:
    case = CASES["CE2"]
    group = SoundGroup(case["n"], machine=TakesThemAtOnce)
    group.play(case["slots"], case["lost"])
    assert group.together() == ["", "d0"]
    assert group.settle()
    assert group.together() == ["d5 d0", "d0 d5"]
    assert group.broken_promises() >= OUT_OF_ORDER


def test_f4_as_a_reading_what_is_taken_at_once_is_sorted_by_priority() -> None:
    paper = PaperRules(priority=PriorityReadings(sorts_preacknowledged=True))
    group = PaperGroup(2, paper=paper)
    group.send(E1, "a", 1)
    group.send(E2, "b", 5)
    group.hear_rest()
    assert receipt_log(group, E1).replace("*", "").split() == ["|", "a", "a", "b", "b"], "as they were accepted"
    for node in (E1, E2):
        group.ready(node)
        group.hear_rest()
    assert receipt_log(group, E1).split()[:2] == ["b", "a"]


# --- F5: the acknowledgment procedure as it is printed ---


def printed_acknowledgment(log: list[str], acknowledged: set[str], most: int = 1_000) -> tuple[list[str], bool]:
    """The procedure letter by letter, of names with a star for pseudo-PDUs: ARL, and whether it ended.

    `else NotEnd := FALSE` belongs to the outer `if`, and what is deleted is what was just dequeued.
    """
    delivered: list[str] = []
    not_end = True
    while not_end:
        most -= 1
        if most < 0:
            return delivered, False
        if not log[0].endswith("*"):
            if log[0] in acknowledged:
                top = log.pop(0)
                delivered.append(top)
                if top in log:
                    log.remove(top)
        else:
            not_end = False
    return delivered, True


def test_f5_as_printed_it_never_ends_at_a_top_that_is_not_acknowledged() -> None:
    assert printed_acknowledgment(["a", "b", "a*", "b*"], {"a"}) == (["a"], False)


def test_f5_as_printed_it_asks_for_the_top_of_an_empty_log() -> None:
    with pytest.raises(IndexError):
        printed_acknowledgment(["a"], {"a"})


def test_f5_as_printed_pseudo_pdus_stay_for_ever() -> None:
    log = ["a", "a*"]
    assert printed_acknowledgment(log, {"a"}) == (["a"], True)
    assert log == ["a*"]


def test_f5_mended_it_ends_and_leaves_nothing_behind() -> None:
    group = PaperGroup(2)
    group.send(E1, "a", 1)
    group.send(E2, "b", 2)
    assert group.settle()
    assert group.together() == ["b a", "b a"]
    assert [receipt_log(group, node).replace("RR*", "").strip() for node in (E1, E2)] == ["|", "|"]


# --- F6: the initiator of a run synchronisation stops at its timer ---

STORY = "b22 q1 q2 q3 r1 r2 g23 x21 r3 s1 s2 s3 t1 t2"
"""Until the timer of b expires at E1: data are letter, entity and priority; the others are RRs of an entity."""
TAKEN = [0, 1, 1, 1, 4, 4, 6, 6, 8, 9, 9, 9, 12, 12]
"""How many slots each had taken when it sent."""


def tell(group: PriorityChannel[Any]) -> None:
    """All that is on the channel before E1's Run-Sync; E1 itself has heard t2."""
    for slot, (word, taken) in enumerate(zip(STORY.split(), TAKEN, strict=True)):
        letter = word[0] if len(word) > 2 else ""
        group.take(slot, int(word[1]) - 1, taken, letter, int(word[2:] or 0))
    group.hear_up_to(E1, 14)
    group.take(14, E3, 12, "", 0)  # t3
    group.take(15, E2, 14, "h", 3)


def test_f6_runs_differ_though_nothing_is_lost() -> None:
    group = PaperGroup()
    tell(group)
    assert receipt_log(group, E1).startswith("g b x ")
    assert group.levels[E1]["b"] > group.levels[E1]["g"], "b is acknowledged and waits behind g"
    group.fire(E1, "run-1-1")
    assert group.labels()[16:] == ["Run-Sync E1"]
    for node in (E2, E3):
        group.hear_up_to(node, 16)
        assert group.delivered[node] == ["g", "b", "x"], "all of it before h came"
    group.hear_up_to(E1, 16)
    assert receipt_log(group, E1).startswith("g h b x "), "E1 has stopped"
    assert group.settle()
    assert group.missed == []
    expected = GOLDEN["run_sync_counterexample"]["paper_delivers"]
    assert group.delivered == [expected[name] for name in ("E1", "E2", "E3")]
    assert group.broken_promises() >= {*OUT_OF_ORDER, "same_runs"}


class StopsWhereItIsHeard(PritoPaper):
    """The initiator goes on until the channel brings its own Run-Sync back."""

    def time_out(self, name: str, out: list[Output]) -> None:
        super().time_out(name, out)
        if any(isinstance(output, Send) and isinstance(output.unit, RunSync) for output in out):
            self.synchronising = False


def test_f6_runs_are_the_same_if_all_stop_at_one_place_of_the_channel() -> None:
    group = PaperGroup(machine=StopsWhereItIsHeard)
    tell(group)
    group.fire(E1, "run-1-1")
    assert group.settle()
    assert group.delivered == [GOLDEN["run_sync_counterexample"]["stop_on_self_receipt_delivers"]] * 3
    assert not group.broken_promises() & {*OUT_OF_ORDER, "same_runs", "complete"}


def test_f6_ends_well_under_the_sound_rules() -> None:
    """Nobody stops; b is not even overtaken, since g was not pre-acknowledged when b was acknowledged."""
    group = SoundGroup()
    tell(group)
    assert group.settle()
    assert group.broken_promises() == set()
    assert group.delivered[E1] == group.delivered[E2] == group.delivered[E3]


@pytest.mark.parametrize(
    ("node", "lost", "stopped"),
    [
        (E2, "Run-Sync E1", [E1, E3]),
        (E1, "Run-Sync E1", [E1, E2, E3]),
        (E1, "Run-Sync-Pack E2", [E1, E2, E3]),
        (E3, "Run-Sync-Ack E2", [E3]),
    ],
)
def test_f6_a_lost_unit_of_synchronisation_stops_nodes_for_good(node: int, lost: str, stopped: list[int]) -> None:
    group = PaperGroup()
    tell(group)
    group.fire(E1, "run-1-1")
    assert not group.settle(lossy=once(node, lost)), "they ask in vain"
    assert [node for node in group.nodes if group.machines[node].synchronising] == stopped
    assert all("h" not in group.delivered[node] for node in stopped)


def test_f6_the_loss_of_a_marker_stops_nobody_under_the_sound_rules() -> None:
    """p waits behind a stream of more urgent packets, until E1 ends the run; E2 loses the marker."""
    group = SoundGroup(2)
    group.send(E1, "p", 1)
    for slot in range(1, 9):
        group.take(slot, [E1, E2][slot % 2], slot, f"h{slot}", 2)
    group.hear_up_to(E1, 9)
    assert group.levels[E1]["p"] is Level.ACKNOWLEDGED
    assert "p" not in group.delivered[E1]
    group.fire(E1, "run")
    assert group.labels()[9:] == ["RunMarker E1"]
    assert group.settle(lossy=once(E2, "RunMarker E1"))
    assert group.missed == [(E2, "RunMarker E1")]
    assert group.broken_promises() == set()
    assert group.delivered[E1] == group.delivered[E2]
