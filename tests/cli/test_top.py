"""`ordercast top`: what is shown of a group, from what its members said."""

import pytest
from rich.console import Console

from ordercast.cli.shared.top_view import Look, rates_of, screen
from ordercast.live.group_members import FoundGroup, FoundMember, Presence
from ordercast.wire.inspection import Inspected, Latency
from tests.cli.conftest import Command


def said(uptime: int, sent: int, delivered: int, *, requests: int = 0, waits: tuple[str, ...] = ()) -> Inspected:
    return Inspected(
        *(1, 2, 3, 0, uptime, sent, (delivered, 0), 2 * sent, 3, requests, 4, 0, 1000 * uptime, 0, 0, 2048, 7),
        latencies=(
            Latency(9, 4_000, 8_000),
            Latency(9, 450_000, 21_000_000),
            Latency(0),
            Latency(9, 2_500_000, 3_000_000),
        ),
        waits=waits,
    )


def group(*presences: Presence, view: int = 3) -> FoundGroup:
    names = ("[bold]ann", "bob", "eve")
    members = tuple(
        FoundMember(place, name, f"127.0.0.1:{place}", "1", presence)
        for place, (name, presence) in enumerate(zip(names, presences, strict=False))
    )
    return FoundGroup("chat", "total", view, False, members)


def shown(now: Look, before: Look | None) -> str:
    console = Console(width=200, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(screen(now, before))
    return captured.get()


def test_rates_are_since_the_look_before() -> None:
    before, now = said(1000, 10, 30), said(3000, 50, 150, requests=6)
    rates = rates_of(now, before)
    assert rates is not None
    assert (rates.sent, rates.delivered, rates.asked, rates.retransmitted) == (20, 60, 3, 0)
    assert rates_of(now, None) is None
    assert rates_of(before, now) is None, "it was started anew meanwhile"


def test_a_screen_has_members_rates_latencies_and_who_waits() -> None:
    found = group(Presence.PRESENT, Presence.SILENT, Presence.PRESENT)
    text = shown(
        Look(found, {0: said(3000, 50, 150, waits=("2 packets wait to be known as accepted by bob",))}),
        Look(found, {0: said(1000, 10, 30)}),
    )
    assert text.startswith("group chat: order total, view 3, 3 members\n")
    ann, bob, eve = (line for line in text.splitlines() if line.startswith(("0 ", "1 ", "2 ")))
    assert ann.split()[:5] == ["0", "[bold]ann", "20", "60", "977"]
    assert "2 KiB" in ann
    assert "does not answer" in bob
    assert "runs a version that does not say more" in eve
    assert "0.004 / 0.008 ms" in text
    assert "0.450 / 21 ms" in text
    assert "–" in text
    assert "[bold]ann: 2 packets wait to be known as accepted by bob" in text


def test_between_two_views_there_are_no_rates() -> None:
    members = {0: said(3000, 50, 150)}
    text = shown(Look(group(Presence.PRESENT, view=4), members), Look(group(Presence.PRESENT), {0: said(1000, 10, 30)}))
    assert "…" in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--every", "0"], "--every must be 0.1 to 3600 seconds, not 0"),
        (["--timeout", "0"], "--timeout must be"),
        (["--join", "127.0.0.1"], "--join: '127.0.0.1' is not an address"),
    ],
)
def test_wrong_arguments_are_sentences(ordercast: Command, arguments: list[str], sentence: str) -> None:
    found = ordercast("top", "g", *arguments)
    assert (found.status, sentence in found.sentence) == (2, True)


def test_a_group_that_is_not_there_has_a_status_of_its_own(ordercast: Command) -> None:
    found = ordercast("top", "no such group", "--join", "127.0.0.1:9", "--timeout", "0.1")
    assert (found.status, found.out) == (1, "")
    assert "no member of the group no such group answered" in found.sentence
