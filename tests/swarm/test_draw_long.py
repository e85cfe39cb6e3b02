"""Long runs, and runs whose numbers begin just below a power of two."""

import pytest

from ordercast.model.runs import Pattern, TraceDetail
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulator import simulate
from ordercast.swarm.draw import draw_config
from ordercast.swarm.draw_long import draw_long
from ordercast.swarm.run_audit import failures_of, longest_wait
from ordercast.swarm.soak import soak_config

EVERY = sorted(PROTOCOLS)
OF_MANY_MESSAGES = 3


@pytest.mark.parametrize("protocol", EVERY)
def test_long_runs_are_of_many_packets_or_of_many_messages_of_one_sender(protocol: str) -> None:
    configs = [draw_long(number, protocol) for number in range(60)]
    packets = [config for config in configs if config.workload.batch == 1]
    messages = [config for config in configs if config.workload.batch > 1]
    assert min(len(packets), len(messages)) > 10
    assert all(2 * 4_000 - 2 <= config.workload.messages * config.group.nodes <= 8_000 for config in packets)
    assert all(config.workload.messages > 1 << 16 for config in messages)
    assert all(config.workload.pattern is Pattern.TALKER for config in messages)
    assert {config.record for config in messages} == {TraceDetail.DELIVERIES}
    assert {config.group.nodes for config in configs} == {2, 3}
    assert {bool(config.faults) for config in configs} == {True, False}
    assert [config.seed for config in configs] == list(range(60))


@pytest.mark.parametrize("protocol", EVERY)
def test_long_runs_hold(protocol: str) -> None:
    assert not failures_of(draw_long(0, protocol, packets=1_000))


def test_so_does_one_with_more_messages_of_a_sender_than_sixteen_bits_number() -> None:
    config = draw_long(OF_MANY_MESSAGES, "to")
    assert config.workload.messages > 1 << 16
    assert not failures_of(config)


def test_a_long_run_with_priorities_is_longer_than_many_times_what_a_message_may_wait() -> None:
    config = draw_long(0, "prito")
    most = longest_wait(config, 0)
    assert most is not None
    result = simulate(config)
    assert result.complete
    assert result.virtual_time > 100 * most


def test_first_numbers_are_small_or_just_below_powers_of_two_which_packets_pass() -> None:
    configs = [draw_config(number, receipts=3_000) for number in range(400)]
    first = [config.group.first_seq for config in configs if any(config.group.first_seq)]
    small = [numbers for numbers in first if max(numbers) < 10]
    large = [numbers for numbers in first if max(numbers) >= 10]
    assert len(small) > 60
    assert len(large) > 30
    powers = {(max(numbers) + 9).bit_length() - 1 for numbers in large}
    assert powers == {8, 16, 31, 32}
    for numbers in large:
        power = 1 << (max(numbers) + 9).bit_length() - 1
        assert all(power - 9 <= number <= power for number in numbers)


def test_of_the_runs_of_a_soak_a_few_are_long() -> None:
    numbers = [number for number in range(1_000) if soak_config(number) == draw_long(number, EVERY[number % 7])]
    assert 10 < len(numbers) < 60
