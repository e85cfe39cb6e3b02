"""The golden cases of the sound ST: ORDER from the replies of all, and what the group delivers in the end."""

from typing import Any

import pytest

from ordercast.model.nodes import mask_of
from ordercast.model.units import PacketId
from ordercast.protocols.st.agreed_order import agreed_order, known_packets
from ordercast.protocols.st.units import ResetReply
from tests.audit.figures import golden
from tests.protocols.one_channel import E1, E2, E3, E4
from tests.protocols.st_paper.entity import AnyGroup, once, sound_group, speak

CASES: dict[str, Any] = golden("golden-spo-st.json")["st_star"]["cases"]
NODES = 3


def number(entity: str) -> int:
    return int(entity[1:]) - 1


def identities(case: Any) -> dict[str, tuple[PacketId, int]]:
    """By letter: source and seq, and the destinations."""
    found: dict[str, tuple[PacketId, int]] = {}
    counts = [0] * NODES
    for entity, to, letter in case["channel"]:
        source = number(entity)
        found[letter] = (source, counts[source]), mask_of(map(number, to))
        counts[source] += 1
    return found


def replies_of(case: Any) -> list[ResetReply]:
    """What each node says in the golden file."""
    known, replies = identities(case), []
    for entity, said in case["RST_PAK_epoch0"].items():
        sent = tuple((known[letter][0][1], known[letter][1]) for letter in said["SENT"])
        log = tuple((*known[letter][0], known[letter][1]) for letter in said["LOG"])
        numbers = (said["TSEQ"], tuple(said["PSEQ"]))
        replies.append(ResetReply(number(entity), 0, *numbers, sent, log, said["PREACKED"]))
    return replies


def told(case: Any) -> AnyGroup:
    """All packets are sent first; then the channel is heard, with the losses."""
    group = sound_group()
    for entity, to, letter in case["channel"]:
        group.submit(number(entity), letter, "".join(name[1:] for name in to))
    group.drain((number(entity), letter) for entity, letters in case["lost"].items() for letter in letters)
    return group


@pytest.mark.parametrize("name", CASES)
def test_st_star_order(name: str) -> None:
    case = CASES[name]
    letters = {identity: letter for letter, (identity, _) in identities(case).items()}
    replies = replies_of(case)
    order = agreed_order(replies)
    assert order is not None
    assert [letters[packet] for packet in order] == case["agreed_order"]
    assert agreed_order(replies[::-1]) == order, "whoever's reply came first"


@pytest.mark.parametrize("name", CASES)
def test_st_star_delivers(name: str) -> None:
    case = CASES[name]
    group = told(case)
    assert group.settle()
    assert dict(zip(("E1", "E2", "E3"), group.delivered, strict=True)) == case["delivered"]
    assert [machine.normal.epoch for machine in group.machines] == case["final_epoch"]
    assert group.broken_promises() == set()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("who", [E1, E2, E3])
@pytest.mark.parametrize("whose", ["E1", "E2", "E3"])
def test_st_star_delivers_though_a_reply_is_lost(name: str, who: int, whose: str) -> None:
    """A node's own reply may be lost to itself: it knows it."""
    case = CASES[name]
    group = told(case)
    assert group.settle(lossy=once((who, f"RST_PAK {whose}")))
    assert [" ".join(case["delivered"][entity]) for entity in ("E1", "E2", "E3")] == group.together()
    assert group.broken_promises() == set()


@pytest.mark.parametrize("name", ["S1", "S2", "S5", "S6", "S8"])
def test_st_star_says_what_it_has(name: str) -> None:
    """The logs in the replies, and what they say about what was sent."""
    case = CASES[name]
    group = told(case)
    group.settle()
    replies = [next(unit for unit in group.channel if group.label(unit) == f"RST_PAK E{node + 1}") for node in range(3)]
    for reply, golden_reply in zip(replies, replies_of(case), strict=True):
        assert isinstance(reply, ResetReply)
        assert (reply.epoch, reply.next_seq, reply.next_seq_to) == (0, golden_reply.next_seq, golden_reply.next_seq_to)
        assert reply.log == golden_reply.log
    said = [reply for reply in replies if isinstance(reply, ResetReply)]
    assert known_packets(said) == known_packets(replies_of(case))


def trimmed_logs_would_fail(group: AnyGroup) -> None:
    """The golden ST*-T1: E1 has delivered g and w before E3 loses m; t is what the file calls m'."""
    group.submit_all("t3:34 g4:14 w1:12")
    group.drain([])
    for hearers in ((E1, E2, E4), (E1,)):
        for node in group.nodes:
            speak(group, node)
        for node in group.nodes:
            rest = group.labels()[group.places[node] :]
            assert len(rest) == 4, "all have spoken"
            (group.hear if node in hearers else group.miss)(node, *rest)


def test_st_star_t1_whole_logs_leave_no_cycle() -> None:
    group = sound_group(nodes=4)
    trimmed_logs_would_fail(group)
    assert group.delivered[E1] == ["g", "w"]
    group.submit_all("m2:23")
    group.drain([(E3, "m")])
    speak(group, E2)
    assert group.settle()
    assert group.together() == ["g w", "w m", "t m", "t g"]
    assert group.broken_promises() == set()


def test_st_star_sends_again_only_what_is_lacking() -> None:
    group = told(CASES["S8"])
    group.settle()
    assert sorted(group.copies) == ["g", "h"]
