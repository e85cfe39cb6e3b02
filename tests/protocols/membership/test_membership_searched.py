"""Everything that small groups of members can do is searched: no promise is broken. See `search` for what happens."""

from typing import Any

import pytest

from tests.protocols.membership.orders import ONE_STREAM, STREAMS
from tests.protocols.membership.search import Search, Text

X, Y = Text("x", 0, None), Text("y", 1, None)

FAST: dict[str, tuple[int, Any, int, dict[str, Any]]] = {
    "one stream, 2 members: a message, two ballots": (3_000, ONE_STREAM, 2, {"texts": (X,), "ballots": 2}),
    "one stream, 2 members: two messages, a ballot": (3_700, ONE_STREAM, 2, {"texts": (X, Y)}),
    "one stream, 2 members: a message, one joins": (8_700, ONE_STREAM, 2, {"texts": (X,), "joiners": 1}),
    "one stream, 2 members: a message, one leaves": (6_300, ONE_STREAM, 2, {"texts": (X,), "leavers": (1,)}),
    "one stream, 2 members: one joins, then another view": (
        *(21_500, ONE_STREAM, 2),
        {"joiners": 1, "ballots": 2, "views": 2},
    ),
    "one stream, alone: two join, one after the other": (450, ONE_STREAM, 1, {"joiners": 2, "ballots": 2, "views": 2}),
    "one stream, 3 members: a ballot by anybody": (700, ONE_STREAM, 3, {}),
    "one stream, 3 members: one joins": (2_100, ONE_STREAM, 3, {"joiners": 1}),
    "one stream, 3 members: two coordinators at once": (15_800, ONE_STREAM, 3, {"ballots": 2, "coordinators": (0, 1)}),
    "streams, 2 members: a message to one, two ballots": (
        1_800,
        STREAMS,
        2,
        {"texts": (Text("x", 0, (1,)),), "ballots": 2},
    ),
    "streams, 2 members: a message to one, one joins": (
        5_000,
        STREAMS,
        2,
        {"texts": (Text("x", 0, (1,)),), "joiners": 1},
    ),
}
SLOW: dict[str, tuple[int, Any, int, dict[str, Any]]] = {
    "one stream, 3 members: two ballots by anybody": (46_000, ONE_STREAM, 3, {"ballots": 2}),
    "one stream, 4 members: a ballot by the oldest": (5_100, ONE_STREAM, 4, {"coordinators": (0,)}),
    "streams, 2 members: messages to each other over two views": (
        *(43_000, STREAMS, 2),
        {"texts": (Text("x", 0, (1,)), Text("y", 1, (0,))), "ballots": 2, "views": 2},
    ),
    "one stream, 2 members: a message, one leaves, two ballots": (
        *(45_000, ONE_STREAM, 2),
        {"texts": (X,), "leavers": (1,), "ballots": 2},
    ),
    "one stream, 2 members: two messages over two views": (
        *(155_000, ONE_STREAM, 2),
        {"texts": (X, Y), "ballots": 2, "views": 2},
    ),
    "one stream, 3 members: a message, a ballot": (76_000, ONE_STREAM, 3, {"texts": (X,)}),
    "one stream, 3 members: one leaves, a ballot": (58_000, ONE_STREAM, 3, {"leavers": (2,)}),
    "streams, 3 members: a message to one, a ballot": (55_000, STREAMS, 3, {"texts": (Text("x", 0, (1,)),)}),
}


def search(least: int, order: Any, members: int, options: dict[str, Any]) -> None:
    states = Search(order, members, **options).run()
    assert states >= least, f"only {states} states: the search has lost something"


@pytest.mark.parametrize("name", FAST)
def test_a_small_group_breaks_no_promise(name: str) -> None:
    search(*FAST[name])


@pytest.mark.soak
@pytest.mark.parametrize("name", SLOW)
def test_a_larger_group_breaks_no_promise(name: str) -> None:
    search(*SLOW[name])
