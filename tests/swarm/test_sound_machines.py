"""Sound machines are not accused of waste; what excuses them excuses no other."""

import msgspec
import pytest

from ordercast.model.machine import LogSizes, Output, Send
from ordercast.model.runs import RunConfig
from ordercast.protocols.sequencer.machine import Sequencer
from ordercast.protocols.sequencer.units import Offer
from ordercast.protocols.spo.machine import Spo
from ordercast.protocols.spo.units import Data
from ordercast.swarm.draw import draw_config
from ordercast.swarm.run_audit import COPIES, KEEPS, failures_of
from ordercast.swarm.soak import EVERY_PROTOCOL, soak_config

replace = msgspec.structs.replace


class OffersTwice(Sequencer):
    """Offers each packet twice, though nothing was lost."""

    def handle(self, event: object) -> list[Output]:
        out = super().handle(event)  # type: ignore[arg-type]
        offered = [each for each in out if type(each) is Send and type(each.unit) is Offer and not each.again]
        return [*out, *(replace(each, again=True) for each in offered)]


class SendsTwice(Spo):
    """Sends each packet twice, though nothing was lost."""

    def handle(self, event: object) -> list[Output]:
        out = super().handle(event)  # type: ignore[arg-type]
        return [*out, *(replace(each, again=True) for each in out if type(each) is Send and type(each.unit) is Data)]


class KeepsOne(Sequencer):
    """Keeps a packet more than it needs."""

    def log_sizes(self) -> LogSizes:
        sizes = super().log_sizes()
        return replace(sizes, held=sizes.held + 1)


def with_history(config: RunConfig, history: int) -> RunConfig:
    options = replace(config.group.sequencer, history=history)
    return replace(config, group=replace(config.group, sequencer=options))


def test_what_waits_for_room_in_the_history_may_be_offered_again() -> None:
    config = draw_config(41, protocol="sequencer")
    group = config.group
    assert (group.nodes, group.window, group.sequencer.history) == (9, 8, 20)
    assert failures_of(config) == []


def test_what_the_history_has_room_for_may_not() -> None:
    config = with_history(draw_config(41, protocol="sequencer"), 9 * 8)
    assert failures_of(config) == []
    assert [failure.kind for failure in failures_of(config, OffersTwice)] == [COPIES]


def test_what_receivers_have_no_buffers_for_may_be_sent_again() -> None:
    config = draw_config(719, protocol="spo")
    assert config.group.quota == 1
    assert failures_of(config) == []
    enough = replace(config, group=replace(config.group, quota=256))
    assert failures_of(enough) == []
    assert [failure.kind for failure in failures_of(enough, SendsTwice)] == [COPIES]


def test_what_a_crashed_node_sent_may_be_kept_if_nobody_had_to_notice_and_no_more() -> None:
    config = draw_config(243, protocol="sequencer")
    assert failures_of(config) == []
    assert [failure.kind for failure in failures_of(config, KeepsOne)] == [KEEPS]


@pytest.mark.parametrize("protocol", EVERY_PROTOCOL)
def test_a_run_is_stalled_only_after_many_of_its_own_polls(protocol: str) -> None:
    for number in range(100):
        config = soak_config(number, (protocol,))
        assert config.stall_timeout >= 1_000 * config.group.timing.poll
