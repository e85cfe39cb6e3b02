"""Groups of every protocol, drawn: two to five nodes, what each sends, and how bad their channel may be."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from ordercast.explorer.scenario import Scenario
from ordercast.model.config import RecoveryPolicy
from ordercast.model.runs import Channel
from ordercast.protocols.po.machine import Po
from ordercast.protocols.prito.prio import Prio
from tests.explorer.groups import broadcasts, priority_total, selective_total, spo, total

Make = Callable[..., Scenario]
"""A scenario from what each node sends, and its settings."""

LEAVE = 1_000
"""How often timers may fire, and units be lost or doubled, where they may be at all: oftener than there are steps."""
NAMES = [f"{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]


@st.composite
def _scripts(draw: st.DrawFn, word: st.SearchStrategy[Callable[[str, int, st.DrawFn], str]]) -> tuple[str, ...]:
    """By node what it sends, each under a name of its own."""
    nodes = draw(st.integers(2, 5))
    lines: list[list[str]] = [[] for _ in range(nodes)]
    for name, source in zip(NAMES, draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=8)), strict=False):
        lines[source].append(draw(word)(name, nodes, draw))
    return tuple(map(" ".join, lines))


def _selective(name: str, nodes: int, draw: st.DrawFn) -> str:
    """To any of the nodes."""
    to = draw(st.sets(st.integers(1, nodes), min_size=1))
    return f"{name}{{{','.join(map(str, sorted(to)))}}}"


def _to_everybody(name: str, nodes: int, draw: st.DrawFn) -> str:
    """In the notation of those that can do nothing else."""
    del nodes, draw
    return name


def _to_all_of_them(name: str, nodes: int, draw: st.DrawFn) -> str:
    """In the notation of those that could do otherwise."""
    del draw
    return f"{name}{{{','.join(str(node + 1) for node in range(nodes))}}}"


def _prioritised(name: str, nodes: int, draw: st.DrawFn) -> str:
    del nodes
    return f"{name}{draw(st.integers(0, 3))}"


@st.composite
def _scenarios(
    draw: st.DrawFn, /, make: Make, word: Callable[[str, int, st.DrawFn], str], **settings: st.SearchStrategy[Any]
) -> Scenario:
    lines = draw(_scripts(st.just(word)))
    how = {name: draw(values) for name, values in settings.items()}
    if how.get("resilience", 0) >= len(lines):
        how["resilience"] = len(lines) - 1
    if how.get("channel", Channel.ONE) is Channel.ONE and how["losses"]:
        how["duplicates"] = 0  # what is lost at its place and comes as its own duplicate has changed its place
    return make(*lines, **how)


SIZES = st.sampled_from([1, 2, 8])
TROUBLE: dict[str, st.SearchStrategy[Any]] = {
    "losses": st.sampled_from([0, LEAVE]),
    "duplicates": st.sampled_from([0, LEAVE]),
    "firings": st.sampled_from([0, 50]),  # who is asked oftener and never answers is given up
    "drained": st.booleans(),
    "window": SIZES,
}
EITHER = st.sampled_from([Channel.MANY, Channel.ONE])
VIEWS = {"suspect_after": 1, "polls_to_abort": 30, "rounds": 400}


def _sequencer(resilience: st.SearchStrategy[int], crashes: st.SearchStrategy[int], make: Make) -> Any:
    return _scenarios(
        partial(make, **VIEWS),
        _to_everybody,
        **TROUBLE,
        channel=st.sampled_from([Channel.ANY, Channel.MANY]),
        history=SIZES,
        direct_from=st.sampled_from([0, 1]),
        resilience=resilience,
        crashes=crashes,
    )


def _go_back(*lines: str, **how: Any) -> Scenario:
    return selective_total(*lines, recovery=RecoveryPolicy.GO_BACK_N, **how)


def _place(*lines: str, **how: Any) -> Scenario:
    return selective_total(*lines, recovery=RecoveryPolicy.PLACE, **how)


def scenarios_of(group: str, **machine: Any) -> st.SearchStrategy[Scenario]:
    """Groups of one kind; `machine=` puts another machine into them."""
    selective = {"quota": SIZES, "infer_losses": st.booleans()}
    st_settings = {**TROUBLE, **selective, "log_limit": st.sampled_from([1, 4, 400])}
    priorities = {**TROUBLE, "quota": SIZES, "synchronises": st.booleans()}
    kinds: dict[str, Callable[[], Any]] = {
        "spo": lambda: _scenarios(partial(spo, **machine), _selective, **TROUBLE, **selective, channel=EITHER),
        "po": lambda: _scenarios(
            partial(spo, **{"machine": Po, **machine}), _to_all_of_them, **TROUBLE, quota=SIZES, channel=EITHER
        ),
        "st": lambda: _scenarios(partial(selective_total, **machine), _selective, **st_settings),
        "st go-back-n": lambda: _scenarios(partial(_go_back, **machine), _selective, **st_settings),
        "st place": lambda: _scenarios(partial(_place, **machine), _selective, **st_settings),
        "to": lambda: _scenarios(partial(total, **machine), _to_everybody, **TROUBLE, quota=SIZES),
        "prito": lambda: _scenarios(partial(priority_total, **machine), _prioritised, **priorities),
        "prio": lambda: _scenarios(partial(priority_total, **{"machine": Prio, **machine}), _prioritised, **priorities),
        "sequencer r=0": lambda: _sequencer(st.just(0), st.sampled_from([0, 1]), partial(broadcasts, **machine)),
        "sequencer r=1": lambda: _sequencer(st.just(1), st.sampled_from([0, 1]), partial(broadcasts, **machine)),
    }
    found: st.SearchStrategy[Scenario] = kinds[group]()
    return found


GROUPS = ("spo", "po", "st", "st go-back-n", "st place", "to", "prito", "prio", "sequencer r=0", "sequencer r=1")
