"""What must hold of a group at rest: all faults are over, all messages have their receipts, and nobody sends."""

from collections import Counter
from collections.abc import Callable, Sequence

from ordercast.live.stats import Stats
from tests.live_harness.application import Life
from tests.live_harness.judge import Failure
from tests.live_harness.plan import Plan, Weather

CALM, SILENT = 2.0, 2.0
"""Failure timeouts that a group may take to come to rest, and for which it is watched then."""


def of_rest(lives: Sequence[Life], plan: Plan, wait: Callable[[float], None]) -> list[Failure]:
    """`wait`: lets so many failure timeouts go by."""
    wait(CALM)
    first = [(life, stats_of(life)) for life in lives]
    wait(SILENT)
    found = [failure for life, stats in first for failure in _of_one(life, stats, is_fair=_is_fair(plan))]
    for life, stats in first:
        more = stats_of(life).units_sent - stats.units_sent
        if more and plan.setup.order != "sequenced":  # whose members tell each other now and then how far they are
            found.append(Failure("not silent", f"{life.name} sent {more} units though nobody had anything to say"))
    return found


def stats_of(life: Life) -> Stats:
    """What the group tells of itself."""
    assert life.group is not None
    return life.group.stats()


def _of_one(life: Life, stats: Stats, *, is_fair: bool) -> list[Failure]:
    found = []
    handed = dict(Counter(message.sender for message in life.received))
    told = {name: count for name, count in stats.messages_delivered.items() if count}
    if told != handed:
        found.append(Failure("stats", f"{life.name} tells that {told} were delivered, and was handed {handed}"))
    sent = sum(each.reached != "" for each in life.sent)
    lost = len(life.sent) - sent
    if not sent <= stats.messages_sent <= sent + lost:
        found.append(Failure("stats", f"{life.name} tells of {stats.messages_sent} messages sent, and {sent} were"))
    if stats.pending_bytes or stats.unread_bytes:
        waiting = f"{stats.pending_bytes} bytes to be sent and {stats.unread_bytes} to be read"
        found.append(Failure("stats", f"{life.name} tells of {waiting}, and nothing waits"))
    kept = {name: count for name, count in stats.logs.items() if count}
    if kept:
        found.append(Failure("keeps", f"{life.name} keeps {kept} when all is known to be stable"))
    if is_fair:
        again = stats.retransmissions + stats.packets_repeated
        if again:
            found.append(Failure("needless", f"{life.name} sent {again} packets again, and nothing was lost"))
        if life.views or life.notices:
            found.append(Failure("needless", f"{life.name} was told of views, and nobody failed, left or joined"))
    return found


def _is_fair(plan: Plan) -> bool:
    """Nothing is lost, late or refused, and nothing is done but to send."""
    weather = plan.weather
    plain = Weather(delay=weather.delay, grain=weather.grain, no_segments=weather.no_segments, jitter=0.0)
    sends = all(step.split()[2] == "sends" for step in plan.steps)
    by_one_way = plan.setup.place == "network"  # a relay takes longer than what goes directly, which comes too early
    return weather == plain and sends and by_one_way
