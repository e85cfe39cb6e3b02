"""Who may begin a group anew: every rule, by what could happen without it."""

from ordercast.protocols.membership.epoch import Cut
from ordercast.protocols.membership.view import GroupView, Incarnation, NextView, Reason
from ordercast.protocols.restart.assessment import Here, assess
from ordercast.protocols.restart.standing import Plan, Standing, encode_standing, stamp_of


def life(name: str, number: int = 1) -> Incarnation:
    return Incarnation(name, number, f"127.0.0.1:{7000 + ord(name[0])}")


def view(number: int, names: str) -> GroupView:
    return GroupView(number, tuple(map(life, names)), tuple(range(len(names))), bytes(8), len(names))


def here(name: str, standing: Standing, position: int = 5, *, is_member: bool = False) -> Here:
    return Here("g", life(name, 2), encode_standing(standing), position, bytes([position] * 16), is_member=is_member)


def missing(*present: Here, least: int = 1, force: bool = False) -> str:
    return assess(present, least, force=force).missing


def names(present: tuple[Here, ...]) -> str:
    return "".join(one.me.name for one in present)


LAST = Standing(view(4, "ABC"))
SOME = "start so many of them that a majority is there"
ONLY_E_IS_MISSING = "E, which may have been the last member (view 5): start it"


def test_a_quorum_of_the_last_view_is_enough() -> None:
    assert missing(here("B", LAST)) == f"A, C, which were in the last view (4: A, B, C): {SOME}"
    found = assess([here("C", LAST, 7), here("A", LAST, 9)], 1, force=False)
    assert (found.missing, names(found.participants), found.absent, found.number) == ("", "AC", ("B",), 5)
    plan = found.plan(b"8 bytes!")
    assert (plan.position, plan.holder.name, plan.basis) == (9, "A", (stamp_of(LAST),) * 2)


def test_half_is_enough_with_the_first_place() -> None:
    last = Standing(view(4, "ABCD"))
    assert missing(here("A", last), here("D", last)) == ""
    assert missing(here("B", last), here("D", last)) != ""


def test_the_last_view_is_the_highest_that_anybody_knows() -> None:
    """B went on with A and without C: B and C are a majority of the view before, and of nothing later."""
    later = Standing(view(5, "AB"))
    assert missing(here("B", later), here("C", LAST)) == "A, which was in the last view (5: A, B): start it"
    assert missing(here("A", later), here("C", LAST)) == ""


def test_a_view_that_one_has_accepted_may_have_followed() -> None:
    """It was decided by A, D and E, which went on; A is back, and has not seen that it was decided."""
    last = view(4, "ABCDE")
    value = NextView(5, 0b11001, (), 0b11001, ((1, Reason.SILENT), (2, Reason.SILENT)), Cut((0,) * 5), 0, (), 5, "")
    accepted = Standing(last, accepted=value)
    others = [here(name, Standing(last)) for name in "BC"]
    assert missing(here("A", accepted), *others) == f"D, E, which may have been in the last view (5: A, D, E): {SOME}"
    found = assess([here("A", accepted), *others, here("D", Standing(last))], 1, force=False)
    assert (found.missing, found.number) == ("", 6)


def test_a_plan_that_one_has_agreed_to_may_have_begun() -> None:
    plan = Plan(5, bytes(8), 9, bytes(16), (life("A"), life("B")), life("A"))
    agreed = Standing(LAST.view, plan=plan)
    assert missing(here("B", agreed), here("C", LAST)) == "A, which may have been in the last view (5: A, B): start it"
    assert missing(here("B", agreed), here("A", LAST)) == ""


def test_who_is_missing_of_two_views_is_named_once() -> None:
    """Of B and C, C was excluded or has left: nobody knows whether B has begun the next view alone."""
    plan = Plan(5, bytes(8), 9, bytes(16), (life("B"),), life("B"))
    agreed = Standing(view(4, "BC"), plan=plan)
    assert missing(here("C", agreed)) == "B, which may have been the last member (view 5): start it"


def test_what_was_promised_for_an_older_view_is_over() -> None:
    plan = Plan(4, bytes(8), 9, bytes(16), (life("X"), life("Y")), life("X"))
    old = Standing(view(3, "ABC"), plan=plan)
    assert missing(here("A", LAST), here("B", old)) == ""


def test_who_was_not_started_again_gives_its_log_and_no_vote() -> None:
    """Its incarnation may still accept a view of others."""
    assert missing(here("A", LAST), here("B", LAST, is_member=True)) != ""
    found = assess([here("A", LAST), here("B", LAST), here("C", LAST, 9, is_member=True)], 1, force=False)
    assert (found.missing, names(found.participants)) == ("", "AB")
    assert found.holder is not None
    assert found.holder.me.name == "C"


def test_a_log_that_had_not_caught_up_is_not_that_of_the_group() -> None:
    joined = Standing(LAST.view, complete=False)
    found = assess([here("A", LAST, 5), here("C", joined, 9)], 1, force=False)
    assert found.holder is not None
    assert found.holder.me.name == "A"
    assert missing(here("B", joined), here("C", joined)) == "a member whose log reaches view 4"


def test_a_log_of_an_older_view_is_not_that_of_the_group() -> None:
    found = assess([here("A", LAST, 5), here("C", Standing(view(3, "ABC")), 9)], 1, force=False)
    assert found.holder is not None
    assert found.holder.me.name == "A"


def test_a_static_quorum_and_force() -> None:
    assert "at least 3 members" in missing(here("A", LAST), here("B", LAST), least=3)
    assert missing(here("C", LAST), force=True, least=3) == ""


def test_who_was_no_member_of_the_last_view_joins_later() -> None:
    found = assess([here("A", LAST), here("B", LAST), here("D", Standing(view(2, "ABD")))], 1, force=False)
    assert (found.missing, names(found.participants)) == ("", "AB")


def test_who_has_forgotten_what_it_promised_does_not_count() -> None:
    forgot = Standing(LAST.view, complete=False, forgot=True)
    assert missing(here("A", LAST), here("B", forgot)) == f"B, C, which were in the last view (4: A, B, C): {SOME}"
    found = assess([here("B", forgot, 9)], 1, force=True)
    assert (found.missing, names(found.participants)) == ("", "B"), "by force its log is better than none"


ONLY_E = NextView(
    5, 0b10000, (), 0b11111, tuple((place, Reason.LEFT) for place in range(4)), Cut((0,) * 5), 0, (), 5, ""
)
"""A to D leave together."""


def test_a_view_that_too_few_can_have_accepted_has_not_followed() -> None:
    """Those that were started again without having accepted it leave no quorum for it, E or not."""
    last = Standing(view(4, "ABCDE"))
    accepted = here("A", Standing(last.view, accepted=ONLY_E))
    assert missing(accepted, here("B", last), here("C", last)) == ONLY_E_IS_MISSING
    assert missing(accepted, here("B", last), here("C", last), here("D", last)) == ""


def test_who_still_may_accept_a_view_or_has_forgotten_whether_it_did_does_not_rule_it_out() -> None:
    last = Standing(view(4, "ABCDE"))
    there = [here("A", Standing(last.view, accepted=ONLY_E)), here("B", last), here("C", last)]
    assert missing(*there, here("D", last, is_member=True)) == ONLY_E_IS_MISSING
    assert missing(*there, here("D", Standing(last.view, forgot=True))) == ONLY_E_IS_MISSING


def test_a_log_that_is_not_whole_is_only_taken_by_force_and_only_if_it_was_damaged() -> None:
    forgot = Standing(LAST.view, complete=False, forgot=True)
    found = assess([here("A", LAST, 5), here("B", LAST, 5), here("C", forgot, 9)], 1, force=False)
    assert found.holder is not None
    assert found.holder.position == 5
    joined = Standing(LAST.view, complete=False)
    assert missing(here("A", joined), here("B", joined), force=True) == "a member whose log reaches view 4"
