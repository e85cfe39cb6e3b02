"""Groups whose members change: each property of views, broken by edited traces in several ways."""

from typing import Any

import pytest

from ordercast.audit.reference import check_run
from ordercast.audit.services import OF_VIEWS
from ordercast.audit.verdict import Verdict
from ordercast.model.services import SELECTIVE, Service
from tests.audit.changing_groups import FOUNDED, Row, Script, audited, broken, columns_of, edited, rows_of, run_row

# E1 to E4 are nodes 0 to 3. Three found the group; E3 is excluded by view 1, in which E4 joins with E1's state; in
# view 2 E2 leaves. "to all" is written as to everybody that ever was, as the simulator does.
GOOD: dict[int, str] = {
    0: f"""{FOUNDED}; send a 0 1 2 3; deliver a; deliver p
        view 1 = 0 1 3 heard 0 1; send b 0 1 2 3; deliver q; deliver b; deliver x
        view 2 = 0 3 heard 0 1 3; send c 0 1 2 3; deliver c; deliver y""",
    1: f"""{FOUNDED}; send p 0 1 2 3; deliver a; deliver p; send q 0 1 2 3
        view 1 = 0 1 3 heard 0 1; deliver q; deliver b; deliver x; leave drained""",
    2: f"{FOUNDED}; send z 0 1 2 3; deliver a; exclude 1",
    3: """view 1 = 0 1 3 heard 0 1; state 0 1; send x 0 1 2 3; deliver q; deliver b; deliver x
        view 2 = 0 3 heard 0 1 3; deliver c; send y 0 1 2 3; deliver y""",
}
ACKNOWLEDGED = edited(GOOD, 0, ("deliver p\n", "deliver p; ack a\n"))
SERVICES = [
    *(Service.TOTAL, Service.PARTIAL, Service.SEQUENCED, Service.PRIORITY, Service.PRIORITY_TOTAL),
    *sorted(SELECTIVE, key=str),
]


@pytest.mark.parametrize("service", SERVICES)
def test_a_group_that_loses_members_and_gets_new_ones_has_all_properties(service: Service) -> None:
    verdict = audited(GOOD, service)
    assert {name: finding.witnesses for name, finding in verdict.findings.items() if not finding.holds} == {}
    assert verdict.findings.keys() | verdict.not_recorded.keys() >= {promise.__name__ for promise in OF_VIEWS}
    assert "delivered_uniformly" not in verdict.findings


def test_what_a_trace_does_not_have_is_not_asked() -> None:
    assert set(audited(GOOD).not_recorded) >= {"acknowledged_stays", "accepted_truthfully"}
    assert "kept" not in audited(GOOD).not_recorded
    assert set(audited(ACKNOWLEDGED, complete=False).not_recorded) == {"kept"}
    assert "acknowledged_stays" not in broken(ACKNOWLEDGED)


BREAKAGES: list[tuple[str, Script, str]] = [
    # --- same_views ---
    (
        "same_views",
        edited(GOOD, 1, ("view 1 = 0 1 3", "view 1 = 0 1")),
        "E1 installed view 1 with E1, E2, E4, E2 with E1, E2",
    ),
    (
        "same_views",
        edited(GOOD, 3, ("view 2 = 0 3", "view 2 = 3 0")),
        "E1 installed view 2 with E1, E4, E4 with E4, E1",
    ),
    (
        "same_views",
        edited(GOOD, 2, ("0 1 2 heard", "0 1 2 3 heard")),
        "E1 installed view 0 with E1, E2, E3, E3 with E1, E2, E3, E4",
    ),
    # --- views_in_order ---
    (
        "views_in_order",
        edited(GOOD, 3, ("view 2 = 0 3 heard 0 1 3; deliver c", "view 3 = 0 3 heard 0 3; deliver c")),
        "E4 installed view 3 after view 1",
    ),
    (
        "views_in_order",
        edited(GOOD, 2, ("exclude 1", "exclude 1; deliver p")),
        "E3 delivered E2#0 after it was excluded",
    ),
    ("views_in_order", edited(GOOD, 1, ("leave drained", "leave drained; send n 0 1")), "E2 sent E2#2 after it left"),
    (
        "views_in_order",
        edited(GOOD, 3, ("view 1 = 0 1 3 heard 0 1;", "deliver p; view 1 = 0 1 3 heard 0 1;")),
        "E4 delivered E2#0 before it installed a view",
    ),
    (
        "views_in_order",
        edited(GOOD, 2, ("exclude 1", "exclude 1; view 2 = 0 2 heard 0 1")),
        "E3 installed view 2 after view 0",
    ),
    # --- self_inclusion ---
    ("self_inclusion", edited(GOOD, 3, ("view 1 = 0 1 3", "view 1 = 0 1")), "E4 installed view 1 with E1, E2"),
    ("self_inclusion", edited(GOOD, 0, ("view 2 = 0 3", "view 2 = 3")), "E1 installed view 2 with E4"),
    (
        "self_inclusion",
        edited(GOOD, 2, ("exclude 1", "view 1 = 0 1 3 heard 0 1")),
        "E3 installed view 1 with E1, E2, E4",
    ),
    # --- primary ---
    (
        "primary",
        edited(GOOD, 0, ("view 1 = 0 1 3 heard 0 1", "view 1 = 0 1 3 heard 0")),
        "E1 installed view 1, which follows from reports of {E1} only, of E1, E2, E3",
    ),
    (
        "primary",
        edited(GOOD, 3, ("view 2 = 0 3 heard 0 1 3", "view 2 = 0 3 heard 0 1")),
        "E4 installed view 2, in which {E4} goes on without having reported",
    ),
    (
        "primary",
        edited(GOOD, 1, ("view 1 = 0 1 3 heard 0 1", "view 1 = 0 1 3")),
        "E2 installed view 1, which does not say whose reports it follows from",
    ),
    (
        "primary",
        edited(GOOD, 0, ("view 1 = 0 1 3 heard 0 1", "view 1 = 0 1 3 heard 3 4 5")),
        "E1 installed view 1, which follows from reports of nobody only, of E1, E2, E3",
    ),
    # --- one_epoch ---
    (
        "one_epoch",
        edited(
            GOOD,
            1,
            (
                "deliver p; send q 0 1 2 3\n        view 1 = 0 1 3 heard 0 1;",
                "send q 0 1 2 3\n view 1 = 0 1 3 heard 0 1; deliver p;",
            ),
        ),
        "E2 delivered E2#0 in view 1, E1 in view 0",
    ),
    (
        "one_epoch",
        edited(GOOD, 0, ("deliver c; deliver y", "deliver c; deliver y; deliver y")),
        "E1 delivered E4#1 twice in view 2",
    ),
    (
        "one_epoch",
        edited(GOOD, 3, ("deliver c;", "deliver b; deliver c;")),
        "E4 delivered E1#1 in view 2, E1 in view 1",
    ),
    # --- same_set ---
    ("same_set", edited(GOOD, 1, ("deliver p;", "")), "E1 delivered E2#0 in view 0, E2 went on without it"),
    ("same_set", edited(GOOD, 3, ("deliver b;", "")), "E1 delivered E1#1 in view 1, E4 went on without it"),
    ("same_set", edited(GOOD, 0, ("deliver y", "")), "E4 delivered E4#1 in view 2, E1 went on without it"),
    (
        "same_set",
        edited(GOOD, 1, ("deliver x; leave", "leave")),
        "E1 delivered E4#0 in view 1, E2 went on without it",
    ),
    # --- uniform ---
    (
        "uniform",
        edited(GOOD, 2, ("deliver a;", "deliver a; deliver z;")),
        "E3 delivered E3#0 in view 0 and has not gone on; E1 went on without it",
    ),
    (
        "uniform",
        edited(GOOD, 2, ("deliver a; exclude 1", "deliver a; deliver q; crash")),
        "E3 delivered E2#1 in view 0 and has not gone on; E1 went on without it",
    ),
    (
        "uniform",
        edited(edited(GOOD, 0, ("deliver c; deliver y", "deliver y; deliver c; crash")), 3, ("deliver c;", "")),
        "E1 delivered E1#2 in view 2 and has not gone on; E4 went on without it",
    ),
    # --- sender_inside ---
    (
        "sender_inside",
        edited(GOOD, 0, ("deliver q;", "deliver q; deliver z;")),
        "E1 delivered E3#0 in view 1, of which E3 is no member",
    ),
    (
        "sender_inside",
        edited(GOOD, 3, ("deliver c; send y", "deliver c; deliver p; send y")),
        "E4 delivered E2#0 in view 2, of which E2 is no member",
    ),
    (
        "sender_inside",
        edited(GOOD, 2, ("deliver a;", "deliver a; deliver x;")),
        "E3 delivered E4#0 in view 0, of which E4 is no member",
    ),
    # --- no_hole ---
    (
        "no_hole",
        edited(GOOD, 0, ("deliver q; deliver b", "deliver q")),
        "E1 delivered messages that E1 sent before and after E1#1, and not E1#1",
    ),
    (
        "no_hole",
        edited(GOOD, 2, ("deliver a; exclude", "deliver a; deliver c; exclude")),
        "E3 delivered messages that E1 sent before and after E1#1, and not E1#1",
    ),
    (
        "no_hole",
        edited(edited(GOOD, 1, ("send q", "send n 0 1 2 3; send q")), 0, ("deliver p", "deliver p")),
        "E1 delivered messages that E2 sent before and after E2#1, and not E2#1",
    ),
    # --- kept ---
    (
        "kept",
        edited(GOOD, 0, ("send c", "send n 0 1 2 3; send c")),
        "E1 lacks E1#2, sent to {E1,E2,E3,E4}, and was a member from view 2 to view 2",
    ),
    (
        "kept",
        edited(GOOD, 1, ("leave drained", "send n 0 1 2 3; leave drained")),
        "E1 lacks E2#2, sent to {E1,E2,E3,E4}, and was a member from view 1 to view 2",
    ),
    (
        "kept",
        edited(GOOD, 3, ("deliver c; send y", "send y")),
        "E4 lacks E1#2, sent to {E1,E2,E3,E4}, and was a member from view 2 to view 2",
    ),
    # --- state_complete ---
    (
        "state_complete",
        edited(GOOD, 3, ("state 0 1", "state 2 1")),
        "E4 joined with the state of view 1 from E3, which was not in views 0 and 1",
    ),
    (
        "state_complete",
        edited(GOOD, 3, ("state 0 1", "state 0 2")),
        "E4 joined with the state of view 2 from E1, but its first view is 1",
    ),
    (
        "state_complete",
        edited(GOOD, 3, ("state 0 1; send x 0 1 2 3; deliver q;", "send x 0 1 2 3; deliver q; state 0 1;")),
        "E4 joined with the state of view 1 from E1, after it had delivered E2#1",
    ),
    (
        "state_complete",
        edited(GOOD, 3, ("deliver q;", "deliver p; deliver q;")),
        "E4 joined with the state of view 1 from E1, and delivered E2#0, which was delivered in view 0",
    ),
    (
        "state_complete",
        edited(edited(GOOD, 3, ("state 0 1", "state 1 1")), 1, ("deliver p;", "")),
        "E4 joined with the state of view 1 from E2; it lacks E2#0, which E1 delivered before that view",
    ),
    (
        "state_complete",
        edited(edited(GOOD, 3, ("state 0 1", "state 1 1")), 1, ("deliver a;", "deliver a; deliver z;")),
        "E4 joined with the state of view 1 from E2; it has E3#0, which E1 did not deliver before that view",
    ),
    # --- acknowledged_stays ---
    (
        "acknowledged_stays",
        edited(ACKNOWLEDGED, 1, ("deliver a;", "")),
        "E1 acknowledged E1#0 in view 0, E2 went on without it",
    ),
    (
        "acknowledged_stays",
        edited(GOOD, 2, ("deliver a;", "deliver a; ack z;")),
        "E3 acknowledged E3#0 in view 0, E1 went on without it",
    ),
    (
        "acknowledged_stays",
        edited(GOOD, 3, ("deliver x\n", "deliver x; ack y\n")),
        "E4 acknowledged E4#1 in view 1, E1 went on without it",
    ),
]


@pytest.mark.parametrize(
    ("change", "sentence", "messages"),
    [
        ("exclude 1; deliver p", "E3 delivered E2#0 after it was excluded", ((1, 0),)),
        ("exclude 1; deliver p; deliver q", "E3 delivered E2#0 after it was excluded", ((1, 0),)),  # one is enough
        ("exclude 1; state 0 1", "E3 loaded a state after it was excluded", ()),
        ("exclude 1; view 1 = 0 2 heard 0", "E3 installed a view after it was excluded", ()),
    ],
)
def test_what_was_done_by_one_that_is_no_member_is_named(change: str, sentence: str, messages: tuple[Any, ...]) -> None:
    found = audited(edited(GOOD, 2, ("exclude 1", change))).findings["views_in_order"].witnesses
    assert [(one.violation.sentence, one.violation.messages) for one in found] == [(sentence, messages)]


def test_who_was_never_a_member_does_nothing_as_far_as_its_record_is_complete() -> None:
    script = {**GOOD, 4: "deliver a"}
    assert broken(script)["views_in_order"] == "E5 delivered E1#0 before it installed a view"
    assert "views_in_order" not in broken(script, unrecorded=1 << 4), "its views may be what was not recorded"
    left = edited(GOOD, 2, ("exclude 1", "exclude 1; deliver p"))
    assert "views_in_order" in broken(left, unrecorded=1 << 2), "it was recorded that it is no member"


@pytest.mark.parametrize(("name", "script", "sentence"), BREAKAGES)
def test_what_is_broken_is_named(name: str, script: Script, sentence: str) -> None:
    assert broken(script).get(name) == sentence


def test_each_property_is_broken_in_three_ways() -> None:
    names = [name for name, _, _ in BREAKAGES]
    assert all(names.count(promise.__name__) >= 3 for promise in OF_VIEWS)


def test_orders_hold_over_all_logs_those_of_excluded_nodes_included() -> None:
    script = edited(GOOD, 2, ("deliver a;", "deliver p; deliver a;"))
    assert "same_order" in broken(script)
    assert "no_cycle" in broken(script)
    assert broken(script, Service.PARTIAL) == {}
    script = edited(GOOD, 3, ("deliver q; deliver b", "deliver b; deliver q"))
    assert "same_order" in broken(script)


def test_each_senders_order_holds_over_views() -> None:
    script = edited(GOOD, 0, ("deliver p", "deliver p; deliver q"), ("deliver q; deliver b", "deliver b"))
    assert "one_epoch" in broken(script)
    script = {
        node: text.replace("deliver q; deliver b", "deliver b").replace("deliver p", "deliver q; deliver p")
        for node, text in GOOD.items()
    }
    assert broken(script)["sender_order_kept"].startswith("E1 delivered E2#1 before E2#0")


def test_half_of_a_view_with_its_first_member_is_a_quorum() -> None:
    script = {
        0: "view 0 = 0 1 heard; send a 0 1; deliver a; view 1 = 0 heard 0",
        1: "view 0 = 0 1 heard; crash",
    }
    assert broken(script) == {}
    other = {0: "view 0 = 0 1 heard; crash", 1: "view 0 = 0 1 heard; send a 0 1; deliver a; view 1 = 1 heard 1"}
    assert set(broken(other)) == {"primary"}
    swapped = {node: text.replace("view 0 = 0 1", "view 0 = 1 0") for node, text in other.items()}
    assert broken(swapped) == {}, "the first place counts, not the lowest number"


# --- what a sequencer promises depends on its resilience ---

TAIL: Script = {
    0: "view 0 = 0 1 2 heard; send a 0 1 2; deliver a; send b 0 1 2; view 1 = 0 1 heard 0 1; deliver b",
    1: "view 0 = 0 1 2 heard; deliver a; view 1 = 0 1 heard 0 1; deliver b",
    2: "view 0 = 0 1 2 heard; send z 0 1 2; deliver a; deliver z; exclude 1",
}


@pytest.mark.parametrize(("resilience", "holds"), [(0, True), (1, False), (2, False)])
def test_a_sequencer_with_resilience_of_half_the_view_is_uniform(resilience: int, holds: bool) -> None:
    config = f'{{"group": {{"rules": "sound", "sequencer": {{"resilience": {resilience}}}}}}}'
    assert set(broken(TAIL, Service.SEQUENCED, config=config)) == (set() if holds else {"uniform"})
    assert set(broken(TAIL, Service.TOTAL, config=config)) == {"uniform"}


def test_the_order_in_a_tail_is_not_asked_where_it_is_not_promised() -> None:
    script = edited(TAIL, 2, ("deliver a; deliver z", "deliver z; deliver a"))
    assert broken(script, Service.SEQUENCED, config=None) == {}
    assert "uniform" in broken(script, Service.SEQUENCED)
    script = edited(TAIL, 1, ("deliver a; view 1", "deliver z; deliver a; view 1"))
    assert "same_set" in broken(script, Service.SEQUENCED, config=None), "whoever goes on has no tail"


@pytest.mark.parametrize("goes_on", ["", "view 1 = 0 1 heard 0 1"])
def test_a_tail_is_cut_whether_or_not_the_others_have_a_next_view(goes_on: str) -> None:
    """What E3 delivered as a sequencer without resilience, and then crashed, others may order differently."""
    script = {
        0: f"view 0 = 0 1 2 heard; send a 0 1 2; deliver p; deliver a; {goes_on}",
        1: f"view 0 = 0 1 2 heard; send p 0 1 2; deliver p; deliver a; {goes_on}",
        2: "view 0 = 0 1 2 heard; deliver a; deliver p; crash",
    }
    assert broken(script, Service.SEQUENCED, config=None) == {}
    assert "same_order" in broken(script, Service.TOTAL)
    assert "same_order" in broken(script, Service.SEQUENCED), "with resilience there are no tails"
    longer = edited(script, 2, ("deliver p;", "deliver p; send z 0 1 2; deliver z;"))
    assert broken(longer, Service.SEQUENCED, config=None) == {}, "the longest of those that go on counts"


def test_what_one_delivered_that_does_not_go_on_others_may_deliver_in_a_later_view() -> None:
    script = edited(TAIL, 2, ("deliver z", "deliver b"))
    assert broken(script, Service.SEQUENCED, config=None) == {}
    assert broken(script, Service.TOTAL)["one_epoch"] == "E1 delivered E1#1 in view 1, E3 in view 0"


def test_a_node_that_was_in_no_view_has_no_tail() -> None:
    script = {**TAIL, 3: ""}
    assert broken(script, Service.SEQUENCED, config=None) == {}


# --- destinations ---

SELECTED: Script = {
    0: "view 0 = 0 1 2 heard; send a 1; send b 1 2; send c 0; deliver c; view 1 = 0 1 heard 0 1; send d 1 2",
    1: "view 0 = 0 1 2 heard; deliver a; deliver b; view 1 = 0 1 heard 0 1; deliver d",
    2: "view 0 = 0 1 2 heard; deliver b; crash",
}


@pytest.mark.parametrize("service", sorted(SELECTIVE, key=str))
def test_only_destinations_count(service: Service) -> None:
    assert broken(SELECTED, service) == {}
    assert "uniform" in broken(edited(SELECTED, 1, ("deliver b;", "")), service)
    assert "kept" in broken(edited(SELECTED, 1, ("deliver d", "")), service)
    assert "no_hole" in broken(edited(SELECTED, 1, ("deliver b;", "")), service)
    assert "complete" in broken(edited(SELECTED, 1, ("deliver a;", "deliver a; deliver c;")), service)
    assert "complete" in broken(edited(SELECTED, 1, ("deliver a;", "deliver a; deliver a;")), service)


SENT_AGAIN: Script = {
    0: "view 0 = 0 1 heard; send a 0 1; view 1 = 0 1 2 heard 0 1; renumber a 0 1 2; deliver a; view 2 = 0 1 heard 0 1",
    1: "view 0 = 0 1 heard; view 1 = 0 1 2 heard 0 1; deliver a; view 2 = 0 1 heard 0 1",
    2: "view 1 = 0 1 2 heard 0 1; deliver a; leave drained",
}


@pytest.mark.parametrize("service", sorted(SELECTIVE, key=str))
def test_what_is_for_all_is_sent_again_to_those_that_joined(service: Service) -> None:
    assert broken(SENT_AGAIN, service) == {}
    assert "complete" in broken(edited(SENT_AGAIN, 0, ("renumber a 0 1 2", "renumber a 0 1")), service)
    assert "same_set" in broken(edited(SENT_AGAIN, 2, ("deliver a; ", "")), service)


def test_that_a_message_was_sent_again_may_be_lacking_in_a_record_that_ends_early() -> None:
    script = edited(SENT_AGAIN, 0, ("renumber a 0 1 2; ", ""))
    assert broken(script)["complete"] == "E3 delivered E1#0, which was sent to {E1,E2} only"
    assert "complete" not in broken(script, unrecorded=1 << 0)


# --- levels ---

LEVELS: Script = {
    0: """view 0 = 0 1 2 heard; send a 0 1 2; accept a; preack a view; ack a view; deliver a
        view 1 = 0 1 heard 0 1; send b 0 1 2; accept b; n; n; n; n; preack b; n; n; n; n; ack b; deliver b""",
    1: """view 0 = 0 1 2 heard; receive a; accept a; preack a view; ack a view; deliver a
        view 1 = 0 1 heard 0 1; receive b; accept b; n; n; n; preack b; n; n; n; n; ack b; deliver b""",
    2: "view 0 = 0 1 2 heard; crash",
}


def levels(**changes: tuple[str, str]) -> Script:
    script = {node: text.replace("n;", "timeout t;") for node, text in LEVELS.items()}
    for name, change in changes.items():
        script = edited(script, int(name[1]), change)
    return script


def test_a_level_by_a_view_is_about_those_that_go_on() -> None:
    assert broken(levels()) == {}
    found = broken(levels(_0=("preack a view", "preack a")))
    assert found == {"preacknowledged_truthfully": "E1 pre-acknowledged E1#0 before {E3} had accepted it"}
    found = broken(levels(_1=("; ack a view", "; ack a")))
    assert found == {"acknowledged_truthfully": "E2 acknowledged E1#0 before {E3} had pre-acknowledged it"}
    found = broken(levels(_1=("receive a; accept a;", "")))
    assert found["acknowledged_truthfully"] == "E1 acknowledged E1#0 before {E2} had pre-acknowledged it"
    assert "delivered_truthfully" in broken(levels(_1=(" ack a view;", "")))


def test_a_level_before_the_first_view_follows_from_no_view() -> None:
    script = edited(GOOD, 3, ("view 1", "preack a; view 1"))
    found = broken(script)["preacknowledged_truthfully"]
    assert found == "E4 pre-acknowledged E1#0 before {E1,E2,E3,E4} had accepted it"


def test_a_node_may_be_supplied_with_what_it_lacks_when_a_view_ends() -> None:
    supplied = {
        0: "view 0 = 0 1 2 heard; send a 0 1 2; accept a; deliver a; @9 view 1 = 0 1 heard 0 1",
        1: "view 0 = 0 1 2 heard; @9 accept a; @9 deliver a; @9 view 1 = 0 1 heard 0 1; receive b",
        2: "view 0 = 0 1 2 heard; crash",
    }
    assert broken(supplied, Service.SEQUENCED) == {}
    early = edited(supplied, 1, ("@9 accept a", "@8 accept a"))
    wrong = {"accepted_truthfully": "E2 accepted E1#0 without having received it"}
    assert broken(early, Service.SEQUENCED) == wrong
    assert broken(edited(supplied, 0, ("accept a;", "@9 accept a;")), Service.SEQUENCED) == {}, "at the same instant"
    nobody = edited(supplied, 0, ("accept a;", "@10 accept a;"))
    assert broken(nobody, Service.SEQUENCED) == wrong


def test_what_a_joiner_accepts_begins_with_its_view() -> None:
    joined = {
        0: "view 0 = 0 heard; send a 0 1; accept a; preack a; ack a; deliver a; view 1 = 0 1 heard 0; send b 0 1"
        "; accept b",
        1: "view 1 = 0 1 heard 0; receive b; accept b",
    }
    assert "accepted_truthfully" not in broken(joined)
    late = edited(joined, 0, ("accept b", "accept b; send c 0 1; accept c; deliver b; deliver c"))
    late = edited(late, 1, ("receive b; accept b", "receive c; accept c; receive b; accept b"))
    assert "accepted_truthfully" in broken(late)


# --- priorities ---


def test_priority_runs_end_with_a_view() -> None:
    good = {
        0: "view 0 = 0 1 heard; send a 0 1; send b 0 1; deliver b; deliver a; view 1 = 0 1 heard 0 1"
        "; deliver c; send d 0 1; deliver d",
        1: "view 0 = 0 1 heard; deliver b; deliver a; send c 0 1; view 1 = 0 1 heard 0 1; deliver c; deliver d",
    }
    rows: list[Row] = [
        (
            *row[:7],
            {"a": 1, "b": 5, "c": 1, "d": 1}.get("abd"[row[5] or 0] if row[0] == 0 else "c")
            if row[3] == "send"
            else None,
            row[8],
        )
        for row in rows_of(good)
    ]

    def found(rows: list[Any]) -> set[str]:
        verdict = Verdict()
        check_run(run_row(Service.PRIORITY_TOTAL, 2), [columns_of(rows)], None, verdict)
        return {name for name, finding in verdict.findings.items() if not finding.holds}

    assert found(rows) == set()
    lacking = [row for row in rows if not (row[0] == 1 and row[3] == "deliver" and row[4:6] == (0, 0))]
    assert found(lacking) >= {"same_runs", "same_set"}


def test_whoever_goes_on_to_the_end_has_the_whole_last_run() -> None:
    script = {0: "view 0 = 0 1 heard; send a 0 1; deliver a", 1: "view 0 = 0 1 heard; deliver a"}
    assert broken(script, Service.PRIORITY_TOTAL) == {}
    lacking = edited(script, 1, ("deliver a", ""))
    found = broken(lacking, Service.PRIORITY_TOTAL)
    assert found["same_runs"] == "in view 0 the 1st priority run of E2 lacks E1#0, unlike that of E1"
    killed = edited(script, 1, ("deliver a", "crash"))
    assert "same_runs" not in broken(killed, Service.PRIORITY_TOTAL)


def test_nobody_that_is_killed_is_asked_for_what_it_did_not_record() -> None:
    killed = edited(GOOD, 3, ("deliver c; send y 0 1 2 3; deliver y", ""))
    assert "kept" in broken(killed)
    found = broken(edited(killed, 0, ("deliver y", "")), unrecorded=1 << 3)
    assert found == {}


def test_whoever_does_not_go_on_delivers_in_the_view_of_the_others_where_delivery_is_uniform() -> None:
    script = {
        0: "view 0 = 0 1 2 heard; send a 0 1 2; deliver a; view 1 = 0 1 2 heard 0 1 2",
        1: "view 0 = 0 1 2 heard; deliver a; view 1 = 0 1 2 heard 0 1 2",
        2: "view 0 = 0 1 2 heard; view 1 = 0 1 2 heard 0 1 2; deliver a; crash",
    }
    assert broken(script)["one_epoch"] == "E3 delivered E1#0 in view 1, E1 in view 0"


def test_priorities_may_leave_holes_up_to_the_end_of_a_view() -> None:
    script = {
        0: "view 0 = 0 1 2 heard; send a 0 1 2; send b 0 1 2; send c 0 1 2; deliver a; deliver c; deliver b",
        1: "view 0 = 0 1 2 heard; deliver a; deliver c; deliver b",
        2: "view 0 = 0 1 2 heard; deliver a; deliver c; crash",
    }
    assert "no_hole" in broken(script, Service.TOTAL)
    assert "no_hole" not in broken(script, Service.PRIORITY_TOTAL), "E3 crashed while the less urgent one waited"
    going_on = edited(script, 2, ("crash", "view 1 = 0 1 2 heard 0 1 2"))
    assert "no_hole" in broken(going_on, Service.PRIORITY_TOTAL)


def test_a_donors_history_begins_with_its_own_state() -> None:
    """E2 was a donor too, and its record ends before that view: nothing is known of what it gave to E3."""
    script = {
        0: "view 0 = 0 1 heard; send a 0 1 2 3 4; deliver a; view 1 = 0 1 2 3 heard 0 1; send b 0 1 2 3 4; deliver b"
        "; view 2 = 0 2 3 4 heard 0 2 3",
        1: "view 0 = 0 1 heard; deliver a; crash",
        2: "view 1 = 0 1 2 3 heard 0 1; state 1 1; deliver b; view 2 = 0 2 3 4 heard 0 2 3",
        3: "view 1 = 0 1 2 3 heard 0 1; state 0 1; deliver b; view 2 = 0 2 3 4 heard 0 2 3",
        4: "view 2 = 0 2 3 4 heard 0 2 3; state 3 2",
    }
    assert broken(script) == {}
    assert broken(edited(script, 1, ("deliver a; ", ""))) == {}, "whatever is lacking in that record"
    lacks = "E5 joined with the state of view 2 from E4; it lacks E1#1, which E1 delivered before that view"
    assert broken(edited(script, 3, ("deliver b;", "")))["state_complete"] == lacks


def test_a_state_that_a_donor_got_itself_counts_as_what_it_delivered() -> None:
    script = {
        0: "view 0 = 0 heard; send a 0 1 2; deliver a; view 1 = 0 1 heard 0; send b 0 1 2; deliver b"
        "; view 2 = 0 1 2 heard 0 1",
        1: "view 1 = 0 1 heard 0; state 0 1; deliver b; view 2 = 0 1 2 heard 0 1",
        2: "view 2 = 0 1 2 heard 0 1; state 1 2",
    }
    assert broken(script) == {}
    lacks = "E3 joined with the state of view 2 from E2; it lacks E1#1, which E1 delivered before that view"
    assert broken(edited(script, 1, ("deliver b;", "")))["state_complete"] == lacks
    unrecorded = edited(script, 1, ("state 0 1; ", ""), ("deliver b;", ""))
    assert "state_complete" not in broken(unrecorded), "nobody recorded what E2 began with"
    for unknown in ("state 9 1", "state 3 1", "state 2 1"):
        found = audited(edited(script, 1, ("state 0 1", unknown))).findings["state_complete"]
        assert [one.violation.nodes[0] for one in found.witnesses] == [1], "of E3's nothing is known then"
