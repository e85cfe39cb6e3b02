"""The explorer itself, on machines whose states can be counted by hand."""

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from ordercast.explorer.counterexample import Counterexample
from ordercast.explorer.explore import SearchReport, explore
from ordercast.explorer.parallel import explore_on
from ordercast.explorer.scenario import Promise, Scenario, format_script, scripts
from ordercast.model.config import GroupConfig
from ordercast.model.machine import Abort, Deliver, Level, Numbered, Output, Reached
from ordercast.model.runs import Channel
from ordercast.model.units import Packet
from ordercast.protocols.registry import MachineClass
from tests.explorer import toys
from tests.explorer.random_walk import random_walk

ONCE_IN_ORDER = Promise(ladder=False)
ONE_ORDER = Promise(ladder=False, one_order=True)


def a_scenario(machine: MachineClass, *lines: str, promise: Promise = ONCE_IN_ORDER, **how: Any) -> Scenario:
    group = GroupConfig(nodes=len(lines))
    return Scenario(machine=machine, group=group, scripts=scripts(*lines), promise=promise, **how)


def seen(report: SearchReport) -> tuple[int, int]:
    assert report.counterexample is None, str(report)
    assert report.exhausted
    return report.states, report.edges


def found(report: SearchReport) -> Counterexample:
    assert report.counterexample is not None, str(report)
    assert not report.exhausted
    return report.counterexample


def test_two_receivers_of_one_message_make_five_states() -> None:
    # Before it is sent; then each of the two has heard it or not.
    assert seen(explore(a_scenario(toys.Flood, "a{2,3}", "", ""))) == (5, 5)


def test_a_link_hands_over_in_the_order_sent() -> None:
    # Sent 0, 1 or 2, and heard no more than that; three ways to send on, three to hear one more.
    assert seen(explore(a_scenario(toys.Flood, "a{2} b{2}", ""))) == (6, 6)


def test_on_many_channels_two_senders_are_heard_in_both_orders() -> None:
    # Five states and five steps for each message, as above, and nothing binds the one to the other.
    assert seen(explore(a_scenario(toys.Flood, "a{3}", "b{3}", ""))) == (5 * 5, 5 * 5 + 5 * 5)


def test_each_node_may_crash_in_each_state() -> None:
    # Unsent, sent or heard, and for each: nobody has crashed, E1 or E2 has. There are two crashes in each of the first
    # three; E1 still sends if it was E2 that crashed, and E2 still hears what E1 has sent before.
    promise = Promise(ladder=False, liveness_goal=None)
    assert seen(explore(a_scenario(toys.Flood, "a{2}", "", promise=promise, crashes=1))) == (3 * 3, 2 + 3 * 2 + 1 + 1)


def test_on_one_channel_all_hear_one_order() -> None:
    lines = ("a{1,2,3}", "b{1,2,3}", "")
    assert seen(explore(a_scenario(toys.ChannelFlood, *lines, promise=ONE_ORDER, channel=Channel.ONE)))[0] > 1
    counterexample = found(explore(a_scenario(toys.ChannelFlood, *lines, promise=ONE_ORDER, channel=Channel.MANY)))
    assert counterexample.sentence.startswith("the orders of delivery have a cycle: E1 <")
    assert len(counterexample.schedule) == 6  # two are sent, and two nodes hear both


def test_on_one_channel_who_counts_its_own_at_once_breaks_the_order() -> None:
    lines = ("a{1,2}", "b{1,2}")
    counterexample = found(explore(a_scenario(toys.Flood, *lines, promise=ONE_ORDER, channel=Channel.ONE)))
    assert counterexample.schedule == ("E1 sends a{1,2}", "E2 sends b{1,2}", "E1 receives E2#0 b", "E2 receives E1#0 a")


def test_a_unit_to_one_node_reaches_no_other() -> None:
    assert seen(explore(a_scenario(toys.Whisper, "a{2}", "", ""))) == (3, 2)
    assert (
        "a{2,3} of E1 is never delivered at E3" in found(explore(a_scenario(toys.Whisper, "a{2,3}", "", ""))).sentence
    )


def test_a_loss_is_found_with_its_schedule() -> None:
    counterexample = found(explore(a_scenario(toys.Flood, "a{2}", "", losses=1)))
    assert counterexample.schedule == ("E1 sends a{2}", "E2 loses E1#0 a")
    assert counterexample.live
    assert counterexample.sentence.startswith("a{2} of E1 is never delivered at E2: no node waits")
    assert str(counterexample).splitlines()[2] == "from there on nothing is lost, and yet:"


def test_no_more_is_lost_than_may_be() -> None:
    # Before it is sent; nothing lost, four states; one lost, so that one or both links are empty, three; both, one.
    for losses, states in (0, 1 + 4), (1, 1 + 4 + 3), (2, 1 + 4 + 3 + 1), (3, 1 + 4 + 3 + 1):
        assert seen(explore(a_scenario(toys.Flood, "a{1}", "", "", losses=losses)))[0] == states


def test_a_loop_back_loses_nothing_and_an_echo_from_the_channel_may_be_missed() -> None:
    assert seen(explore(a_scenario(toys.LoopedFlood, "a{1}", "", losses=1, channel=Channel.ONE)))[0] == 7
    counterexample = found(explore(a_scenario(toys.ChannelFlood, "a{1}", "", losses=1, channel=Channel.ONE)))
    assert counterexample.schedule == ("E1 sends a{1}", "E1 loses E1#0 a")


@pytest.mark.parametrize("firings", [0, 2])
def test_a_node_hears_itself_before_its_next_timer_fires(firings: int) -> None:
    report = explore(a_scenario(toys.HearsItselfFirst, "a{2}", "", firings=firings))
    assert report.exhausted, str(report)
    assert report.longest == 1


def test_a_unit_may_come_twice_in_a_row() -> None:
    counterexample = found(explore(a_scenario(toys.Flood, "a{2}", "", duplicates=1)))
    assert counterexample.sentence == "a{2} of E1 at E2 is delivered a second time"
    assert counterexample.schedule == (
        "E1 sends a{2}",
        "E2 will receive twice in a row E1#0 a",
        "E2 receives E1#0 a",
        "E2 receives E1#0 a",
    )
    assert not counterexample.live


def test_a_unit_may_come_again_after_later_ones() -> None:
    counterexample = found(explore(a_scenario(toys.NoStutter, "a{2} b{2}", "", duplicates=1)))
    assert counterexample.sentence == "a{2} of E1 at E2 is delivered a second time"
    assert counterexample.schedule[2] == "E2 will receive again later E1#0 a"


def test_timers_fire_as_often_as_they_may() -> None:
    # Before it is sent; then heard or not, and so many ticks.
    for firings, ticks in (0, 0), (1, 1), (2, 2), (3, 3), (9, 3):
        assert seen(explore(a_scenario(toys.Ticker, "a{2}", "", firings=firings)))[0] == 1 + 2 * (1 + ticks)


def test_patient_timers_wait_until_nothing_is_under_way() -> None:
    # Before it is sent; under way; heard, and then so many ticks.
    assert seen(explore(a_scenario(toys.Ticker, "a{2}", "", firings=2, patient=True)))[0] == 5


def test_a_cancelled_timer_does_not_fire() -> None:
    assert seen(explore(a_scenario(toys.Canceller, "a{2}", "", firings=2)))[0] == 3


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [(toys.EndlessTicker, "never becomes quiescent (its states repeat)"), (toys.Climber, "is not quiescent after")],
)
def test_a_group_that_never_falls_silent_is_found(machine: MachineClass, sentence: str) -> None:
    counterexample = found(explore(a_scenario(machine, "a{2}", "")))
    assert sentence in counterexample.sentence
    assert "E1 has set t" in counterexample.sentence


@pytest.mark.parametrize("firings", [0, 1, 2])
def test_rounds_of_timers_are_counted_to_the_end_also_of_what_was_seen_before(firings: int) -> None:
    """Three ticks follow the sending, whichever part of them a continuation has met already."""
    scenario = a_scenario(toys.Ticker, "a{2}", "", firings=firings, rounds=3)
    assert explore(a_scenario(toys.Flood, "a{2}", "")).longest == 0
    assert explore(scenario).longest == 3
    assert "is not quiescent after 2 rounds" in found(explore(dataclasses.replace(scenario, rounds=2))).sentence


STORM = "units cause units without end, though no timer fires"


@pytest.mark.parametrize("machine", [toys.PingPong, toys.Avalanche])
@pytest.mark.parametrize("reduced", [False, True])
def test_units_that_call_forth_units_without_end_are_found_behind_a_timer(
    machine: MachineClass, *, reduced: bool
) -> None:
    counterexample = found(explore(a_scenario(machine, "a{2}", ""), reduced=reduced))
    assert STORM in counterexample.sentence
    assert counterexample.live


@pytest.mark.parametrize("processes", [0, 1, 2])
@pytest.mark.parametrize("reduced", [False, True])
def test_a_circle_of_receipts_is_found_by_a_search_that_never_comes_to_a_final_state(
    processes: int, *, reduced: bool
) -> None:
    scenario = a_scenario(toys.ServesAtOnce, "a{2}", "")
    report = explore_on(processes, scenario, reduced=reduced) if processes else explore(scenario, reduced=reduced)
    assert STORM in found(report).sentence


def test_where_nothing_is_owed_a_circle_is_none_of_our_business() -> None:
    report = explore(a_scenario(toys.ServesAtOnce, "a{2}", "", promise=Promise(ladder=False, liveness_goal=None)))
    assert report.exhausted, str(report)


def test_what_grows_without_end_is_cut_and_then_found() -> None:
    scenario = a_scenario(toys.Avalanche, "a{2}", "", firings=1)
    begins = ("E1 sends a{2}", "E2 receives E1#0 a", "E1 timer tick fires")
    report = explore(scenario, max_states=100, begins=begins)
    assert STORM in found(report).sentence


def accepted(packet: Packet) -> Output:
    return Reached(Level.ACCEPTED, packet)


def preacknowledged(packet: Packet) -> Output:
    return Reached(Level.PREACKNOWLEDGED, packet)


@pytest.mark.parametrize(
    ("line", "claims", "sentence"),
    [
        ("a{1,2}", (Numbered,), "E1 numbers a{1,2} of E1 out of turn"),
        ("a{1,2}", (accepted, accepted), "a{1,2} of E1 at E1 is accepted a second time"),
        ("a{2}", (accepted,), "a{2} of E1 at E1 is accepted, but it is not addressed to it"),
        ("a{1,2}", (preacknowledged,), "a{1,2} of E1 at E1 is preacknowledged before it was accepted"),
        ("a{1,2}", (Deliver,), "a{1,2} of E1 at E1 is delivered a second time"),
        ("a{1,2}", (lambda packet: Deliver(replace(packet, payload=b"b")),), "which no node submitted"),
        ("a{1,2}", (lambda _: Abort("tired"),), "E1 aborts the group: tired"),
    ],
)
def test_a_claim_that_its_node_alone_gives_the_lie_is_found(line: str, claims: tuple[Any, ...], sentence: str) -> None:
    class Boasts(toys.Boaster):
        pass

    Boasts.claims = claims
    counterexample = found(explore(a_scenario(Boasts, line, "")))
    assert sentence in counterexample.sentence
    assert counterexample.schedule == (f"E1 sends {line}",)


def test_whatever_a_machine_raises_is_found_with_its_schedule() -> None:
    class Breaks(toys.Ticker):
        def fire(self, name: str) -> Any:
            raise ZeroDivisionError(name)

    counterexample = found(explore(a_scenario(Breaks, "a{2}", "", firings=1)))
    assert counterexample.sentence == "E1 raises ZeroDivisionError('tick')"
    assert counterexample.schedule == ("E1 sends a{2}", "E1 timer tick fires")


def test_a_search_that_is_cut_says_so_and_still_continues_what_it_left() -> None:
    report = explore(a_scenario(toys.Flood, "a{2} b{2} c{2}", ""), max_states=2)
    assert (report.exhausted, report.counterexample) == (False, None)
    assert report.continued == 2  # in both manners
    late = explore(a_scenario(toys.Whisper, "a{2,3}", "", ""), max_states=1)
    assert late.counterexample is not None
    assert late.counterexample.schedule == ()


def test_a_snapshot_that_does_not_survive_is_found() -> None:
    counterexample = found(explore(a_scenario(toys.Counter, "a{2}" + " a{2}" * 20, "")))
    assert "does not survive being restored" in counterexample.sentence


def test_a_walk_finds_what_a_search_finds() -> None:
    scenario = a_scenario(toys.Flood, "a{2} b{2}", "", losses=1)
    walks = [random_walk(scenario, seed, 20) for seed in range(20)]
    assert any(walk is not None and "never delivered at E2" in walk.sentence for walk in walks)
    assert all(random_walk(a_scenario(toys.Flood, "a{2} b{2}", ""), seed, 20) is None for seed in range(20))


@pytest.mark.parametrize("line", ["a[]", "a{}", "a{1", "a{1,}", "{1}", "a{1}[2]"])
def test_a_script_is_written_in_the_papers_notation(line: str) -> None:
    with pytest.raises(ValueError, match="is not an item of a script"):
        scripts(line)


def test_a_script_names_destinations_or_everybody_and_perhaps_a_priority() -> None:
    assert format_script(scripts("x{2} y z[3] h[5]{1,2}", "")[0]) == "x{2} y{1,2} z[3]{1,2} h[5]{1,2}"
    with pytest.raises(ValueError, match="not one of E1 to E2"):
        scripts("x{3}", "")
