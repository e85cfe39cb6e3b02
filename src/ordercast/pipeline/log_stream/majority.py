"""Up to which position a query may read: what a majority of the members has on its disks, and all that have it agree.

What fewer have may be in nobody's order after a crash, and another message then gets its place.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ordercast.pipeline.log_stream.member_log import OrderPlace, Standing


class Offered(msgspec.Struct, frozen=True):
    """What may be read now."""

    position: int | None
    """Messages below it; None: too few logs answer."""
    lacks: tuple[str, ...] = ()
    """Those that do not answer, of the members whose majority is asked for."""
    asked: int = 1
    """So many of them are a majority."""
    voters: tuple[str, ...] = ()
    """The members whose majority is asked for."""


def offered(names: Sequence[str], standings: Mapping[str, Standing]) -> Offered:
    """`names`: of all logs; `standings`: of those that answer.

    The majority is that of the newest view, if a log has the name of one of its members; else that of all logs.
    """
    voters = _voters(names, standings)
    asked = len(voters) // 2 + 1
    ends = sorted((standings[name].durable for name in voters if name in standings), reverse=True)
    lacks = tuple(name for name in voters if name not in standings)
    return Offered(ends[asked - 1] if len(ends) >= asked else None, lacks, asked, tuple(voters))


def _voters(names: Sequence[str], standings: Mapping[str, Standing]) -> Sequence[str]:
    if len(names) == 1:
        return names
    view = max((each.view for each in standings.values()), key=lambda each: each.number, default=None)
    members = view.members if view is not None else ()
    return members if any(name in names for name in members) else names


def disagreement(places: Mapping[str, OrderPlace | None], expected: OrderPlace | None = None) -> str | None:
    """A sentence that names who has another order; None: all that have the position agree.

    `places`: by member, one position; `expected`: what the query has read before.
    """
    by_hash: dict[bytes, list[str]] = {}
    for name, place in places.items():
        by_hash.setdefault(place.hash if place is not None else b"", []).append(name)
    if expected is not None and expected.hash:
        by_hash.setdefault(expected.hash, [])
    if len(by_hash) <= 1:
        return None
    position = next(each for each in (*places.values(), expected) if each is not None).position
    if expected is not None and expected.hash:
        wrong = [name for key, some in by_hash.items() if key != expected.hash for name in some]
        others = "what this query has read before"
        return f"{_named(wrong)} {_have(wrong)} another order than {others}, below position {position}"
    most = max(by_hash.values(), key=len)
    wrong = [name for some in by_hash.values() if some is not most for name in some]
    if len(most) > len(wrong):
        return f"{_named(wrong)} {_have(wrong)} another order than {_named(most)}, below position {position}"
    return f"{_named([*most, *wrong])} have different orders below position {position}, and none has a majority"


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _named(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
