"""The promises of each protocol under each of its rules, and scenarios of all of them.

The printed rules are checked for safety only, unless a liveness goal is given: most of them never terminate, or wait
forever, even without loss.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ordercast.explorer.membership import MemberMachine
from ordercast.explorer.scenario import Promise, Scenario, returning, scripts
from ordercast.model.config import GroupConfig, PriorityConfig, RecoveryPolicy, Rules, SequencerConfig, require
from ordercast.model.machine import Level
from ordercast.model.nodes import everybody
from ordercast.model.runs import WITH_LOGS
from ordercast.protocols.registry import machine_class

_SENDER_ORDER = Promise(never_less=("expected", "expected_to_me", "seen", "seen_to_me"))
_TOTAL = Promise(one_order=True, never_less=("accepted_packets", "delivered_by"))
_URGENT_FIRST = replace(_TOTAL, urgent_first=True)
_PROMISES: dict[tuple[str, Rules], Promise] = {
    ("spo", Rules.SOUND): _SENDER_ORDER,
    ("spo", Rules.PAPER): Promise(liveness_goal=None, never_less=("expected", "expected_to_me")),
    ("po", Rules.SOUND): _SENDER_ORDER,
    ("st", Rules.SOUND): Promise(one_order=True, never_less=("expected", "expected_to_me", "stamps", "epoch_seen")),
    ("st", Rules.PAPER): Promise(one_order=True, liveness_goal=None),
    ("to", Rules.SOUND): _TOTAL,
    ("prito", Rules.SOUND): _URGENT_FIRST,
    ("prito", Rules.PAPER): Promise(one_order=True, sender_order=False, liveness_goal=None),
    ("prio", Rules.SOUND): _URGENT_FIRST,
    ("sequencer", Rules.SOUND): Promise(one_order=True, ladder=False, views=True, never_less=("ordered_below",)),
    ("sequencer", Rules.PAPER): Promise(one_order=True, ladder=False, liveness_goal=None),
}

_TO_ANY_SUBSET = {"spo", "st"}
_GROUP = {"window", "quota", "infer_losses", "first_seq", "log_limit", "recovery", "polls_late", "polls_to_abort"}
_GROUP |= {"paper", "views", "delivers_stable"}
_SEQUENCER = {"history", "history_bytes", "resilience", "direct_from", "suspect_after"}
_ROUNDS_OF_VIEWS = 200
_NUMBERED = re.compile(r"\b([a-z]+)(\d+)\b(?!\[)")


def scenario(
    protocol: str,
    lines: Sequence[str],
    rules: Rules = Rules.SOUND,
    *,
    promise: Promise | None = None,
    **how: Any,
) -> Scenario:
    """A scenario of a protocol; `lines`: a script for each node; `how`: fields of its configuration and bounds.

    Where packets have priorities, "p1" is short for "p[1]". `promise` and `machine` replace the protocol's own, and
    `liveness_goal` that of the promise. The default channel is the weakest that the protocol works on.
    """
    kind = machine_class(protocol, rules, how.get("recovery"))
    if protocol in {"to", "prito", "prio"}:
        lines = [_NUMBERED.sub(r"\1[\2]", line) for line in lines]
    sends = scripts(*lines)
    for submission in (submission for script in sends for submission in script):
        require(
            protocol in _TO_ANY_SUBSET or submission.destinations == everybody(len(lines)),
            f"{protocol} broadcasts every message: write {submission.payload.decode()!r} without destinations",
        )
    group = GroupConfig(
        nodes=len(lines),
        rules=rules,
        priority=PriorityConfig(synchronises=how.pop("synchronises", True)),
        sequencer=SequencerConfig(**{name: how.pop(name) for name in _SEQUENCER & how.keys()}),
        **{name: how.pop(name) for name in _GROUP & how.keys()},
    )
    promised = promise or promise_of(protocol, group)
    if "liveness_goal" in how:
        promised = replace(promised, liveness_goal=how.pop("liveness_goal"))
    asked = {"machine": kind, "channel": kind.needs, **how}
    if group.views:
        back: tuple[str, ...] = how.get("returns", ())
        founders = len(lines) - how.get("joins", 0) - len(back)
        logs = bool(how.get("logs"))
        require(
            not logs or protocol in WITH_LOGS,
            f"{protocol} has no logs, only {', '.join(sorted(WITH_LOGS))}: "
            "others deliver different messages at each node",
        )
        member = MemberMachine(protocol, founders, returning(back, len(lines)), logs)
        asked = {"machine": member, "channel": kind.needs, "rounds": _ROUNDS_OF_VIEWS, **how}
    return Scenario(group=group, scripts=sends, promise=promised, **asked)


def promise_of(protocol: str, group: GroupConfig) -> Promise:
    """The promises of a protocol in such a group."""
    promised = _PROMISES[protocol, group.rules]
    if group.delivers_stable:
        promised = replace(promised, delivers_at=Level.PREACKNOWLEDGED)
    if group.views:
        uniform = protocol != "sequencer" or group.sequencer.resilience > 0
        return replace(promised, views=True, uniform=uniform, never_less=())
    if protocol == "st" and group.recovery is RecoveryPolicy.PLACE:
        return replace(promised, never_less=("stamps", "known_generations", "stable_below"))
    if protocol == "st" and group.recovery is RecoveryPolicy.GO_BACK_N:
        return replace(promised, never_less=("stamps", "epoch_seen"))  # discarded packets are expected again
    return replace(promised, uniform=True) if promised.views and group.sequencer.resilience else promised


def default_scripts(protocol: str, nodes: int) -> list[str]:
    """The default scripts: two nodes send one message each."""
    others = ",".join(str(node + 1) for node in range(1, nodes))
    two = {
        "spo": [f"a{{{others}}}", "b"],
        "prito": ["p[1]", "h[5]"],
        "prio": ["p[1]", "h[5]"],
        "sequencer": ["", "a", "b"][:nodes],
    }.get(protocol, ["a", "b"])
    return two + [""] * (nodes - len(two))
