"""What complete means when nodes crash, are shut out, or give the group up."""

from ordercast.model.config import MILLISECOND, GroupConfig, SequencerConfig
from ordercast.model.faults import Crash
from ordercast.model.runs import RunConfig, Workload
from ordercast.model.units import Packet
from ordercast.simulator import simulate
from ordercast.simulator.completion import Completion


def a_group(*delivered: str, has_views: bool) -> Completion:
    """E1 and E2 sent one packet each to all three; `delivered` says what each node was given."""
    completion = Completion(3, [1, 1, 0], has_views=has_views)
    packets = {name: Packet(source, 0b111, 0, (), 0, (1,), b"x") for source, name in enumerate("ab")}
    for packet in packets.values():
        completion.numbered(packet)
    for node, names in enumerate(delivered):
        for name in names:
            completion.delivered(node, packets[name])
    return completion


def test_everybody_must_be_given_everything() -> None:
    assert a_group("ab", "ab", "ab", has_views=True).is_complete()
    assert not a_group("ab", "ab", "a", has_views=True).is_complete()


def test_with_views_those_that_go_on_must_and_the_rest_is_all_or_nothing() -> None:
    for delivered, complete in ((("", "b", "b"), True), (("", "ab", "ab"), True), (("", "ab", "b"), False)):
        completion = a_group(*delivered, has_views=True)
        assert not completion.is_complete()
        completion.left(0)
        assert completion.is_complete() is complete


def test_with_views_who_gives_up_is_gone_and_without_the_group_is() -> None:
    for has_views in (True, False):
        completion = a_group("", "b", "b", has_views=has_views)
        completion.aborted(0)
        assert completion.is_complete() is has_views
        assert completion.aborted_nodes() == (0,)


def test_if_nobody_goes_on_nothing_is_complete() -> None:
    completion = a_group("ab", "ab", "ab", has_views=True)
    for node in range(3):
        completion.aborted(node)
    assert not completion.is_complete()


def test_what_was_never_sent_is_missing_unless_its_sender_is_gone() -> None:
    completion = Completion(2, [1, 0], has_views=True)
    assert not completion.is_complete()
    completion.left(0)
    assert completion.is_complete()


def test_a_run_with_a_heartbeat_ends_complete_and_not_stalled() -> None:
    """Timers go on for ever then; that no progress is because all is done."""
    group = GroupConfig(nodes=3, sequencer=SequencerConfig(heartbeat=5 * MILLISECOND))
    config = RunConfig(
        protocol="sequencer", group=group, workload=Workload(messages=5), stall_timeout=100 * MILLISECOND
    )
    result = simulate(config)
    assert (result.complete, result.stalled) == (True, False)


def test_a_result_names_those_that_the_others_went_on_without() -> None:
    faults = (Crash(node=0, at=2 * MILLISECOND),)
    config = RunConfig(protocol="sequencer", group=GroupConfig(nodes=4), workload=Workload(messages=40), faults=faults)
    result = simulate(config.with_default_timeouts())
    assert (result.complete, result.left) == (True, (0,))
    assert simulate(RunConfig(protocol="sequencer", group=GroupConfig(nodes=2))).left == ()
