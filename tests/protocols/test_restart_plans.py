"""What one that was started again says, asks for and waits for, input by input."""

from msgspec.structs import replace

from ordercast.protocols.restart.assessment import Here
from ordercast.protocols.restart.machine import (
    Abandon,
    BeginAnew,
    FetchLog,
    NotePlan,
    Offer,
    Patience,
    RestartMachine,
    RestartOutput,
    Say,
)
from ordercast.protocols.restart.standing import Plan, encode_standing, stamp_of
from tests.protocols.restarting import HASHES, LAST, life

AT_ONCE = Patience(grace=0)
BOTH = (life("A", 2), life("B", 2))


def machine(name: str, position: int = 5, patience: Patience = AT_ONCE) -> RestartMachine:
    found = RestartMachine(life(name, 2), "g", LAST, patience=patience)
    found.place(position, HASHES[position])
    return found


def heard(name: str, by: str, position: int = 5, plan: Plan | None = None, *, ready: bool = False) -> Here:
    """What one says that has heard the other."""
    note = encode_standing(LAST)
    return Here("g", life(name, 2), note, position, HASHES[position], heard=((by, 2),), plan=plan, ready=ready)


def plan_of(*names: str, position: int = 5, holder: str = "A", number: int = 5) -> Plan:
    stamps = tuple(stamp_of(LAST) for _ in names)
    members = tuple(life(name, 2) for name in names)
    return Plan(number, b"8 bytes!", position, HASHES[position], members, life(holder, 2), stamps)


def kinds(outputs: list[RestartOutput]) -> list[type]:
    return [type(output) for output in outputs]


def test_a_member_of_a_plan_agrees_and_no_other_does() -> None:
    b, c = machine("B"), machine("C")
    plan = plan_of("A", "B")
    assert b.hear(heard("A", "B", plan=plan)) == [NotePlan(plan)]
    assert c.hear(heard("A", "C", plan=plan)) == []
    assert (b.plan, c.plan) == (plan, None)


def test_a_plan_for_a_view_that_is_known_already_is_not_agreed_to() -> None:
    b = machine("B")
    assert b.hear(heard("A", "B", plan=plan_of("A", "B", number=LAST.view.number))) == []
    assert b.plan is None


def test_who_lacks_the_log_of_a_plan_says_the_plan_before_it_asks() -> None:
    b = machine("B", 3)
    plan = plan_of("A", "B")
    said, asked = b.hear(heard("A", "B", plan=plan))
    assert isinstance(said, Say)
    assert said.here.plan == plan
    assert asked == FetchLog(plan)


def test_a_log_that_has_come_is_what_this_one_has_from_now_on() -> None:
    b = machine("B", 3)
    plan = plan_of("A", "B")
    b.hear(heard("A", "B", plan=plan))
    assert b.log_is(5, HASHES[5]) == [NotePlan(plan)]
    assert (b.here().position, b.here().hash) == (5, HASHES[5])


def test_a_log_that_comes_when_nothing_is_asked_for_any_more_is_only_noted() -> None:
    b = machine("B", 3)
    assert b.log_is(4, HASHES[4]) == []
    b.hear(heard("A", "B", plan=plan_of("A", "B")))
    b.log_is(5, HASHES[5])
    b.noted(b"8 bytes!")
    assert b.log_is(5, HASHES[5]) == []
    assert b.log_is(6, HASHES[6]) == [], "it is not given up any more"
    assert b.ready


def test_that_it_is_ready_is_said_when_the_plan_is_on_the_disk() -> None:
    b = machine("B")
    b.hear(heard("A", "B", plan=plan_of("A", "B")))
    [said] = b.noted(b"8 bytes!")
    assert isinstance(said, Say)
    assert said.here.ready


def test_the_first_one_says_that_the_view_begins_before_it_begins() -> None:
    a = machine("A")
    a.hear(heard("B", "A"))
    assert a.plan is not None
    a.noted(a.plan.tag)
    said, begun = a.hear(heard("B", "A", plan=a.plan, ready=True))
    assert isinstance(said, Say)
    assert said.here.begins
    assert begun == BeginAnew(a.plan)


def test_who_makes_a_plan_with_its_own_log_offers_it_first() -> None:
    a = machine("A", 7)
    out = a.hear(heard("B", "A", 5))
    assert a.plan is not None
    assert out == [Offer(a.plan), NotePlan(a.plan)]


def test_who_makes_a_plan_with_the_log_of_another_one_offers_nothing() -> None:
    a = machine("A", 5)
    out = a.hear(heard("B", "A", 5))
    assert a.plan is not None
    assert a.plan.holder.name == "B", "of equal logs it is the one of the last name"
    assert out == [NotePlan(a.plan)]


def test_a_plan_is_given_up_when_its_time_is_over_and_not_before() -> None:
    a = machine("A", patience=Patience(grace=0, plan=4, silent=100))
    a.hear(heard("B", "A"))
    assert a.plan is not None
    for _ in range(4):
        assert Abandon not in kinds(a.tick())
    assert Abandon in kinds(a.tick())


def test_a_plan_with_a_silent_member_is_given_up_when_its_time_is_over_and_not_before() -> None:
    a = machine("A", patience=Patience(grace=0, plan=100, silent=4))
    a.hear(heard("B", "A"))
    assert a.plan is not None
    a.noted(a.plan.tag)
    for _ in range(4):
        assert Abandon not in kinds(a.tick())
    assert Abandon in kinds(a.tick())


def test_those_that_are_missing_are_waited_for_so_long_and_no_longer() -> None:
    a = machine("A", patience=Patience(grace=4))
    a.tick()
    a.hear(heard("B", "A"))
    for _ in range(3):
        a.tick()
        assert a.plan is None
    a.tick()
    assert a.plan is not None


def test_those_that_were_not_started_again_and_say_so_are_not_waited_for() -> None:
    """C is in the last view still, and does not reach enough others: it will not come as one that was started again."""
    a = machine("A", patience=Patience(grace=4))
    a.hear(replace(heard("C", "A"), me=life("C", 1), is_member=True))
    a.hear(heard("B", "A"))
    assert a.plan is not None
    assert a.plan.members == BOTH


def test_when_there_are_not_enough_for_a_while_the_missing_are_waited_for_anew() -> None:
    a = machine("A", patience=Patience(grace=6, forget=2))
    a.hear(heard("B", "A"))
    for _ in range(3):
        a.tick()
    assert (
        a.waits_for == "B, C, which were in the last view (4: A, B, C): start so many of them that a majority is there"
    )
    for _ in range(5):
        a.tick()
        a.hear(heard("B", "A"))
        assert a.plan is None
    for _ in range(2):
        a.tick()
        a.hear(heard("B", "A"))
    assert a.plan is not None
