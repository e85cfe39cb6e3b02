"""R7: the next view that a coordinator chooses from the reports of some members."""

from collections.abc import Callable, Mapping, Sequence, Set

from ordercast.model.nodes import everybody, mask_of, members
from ordercast.protocols.membership.epoch import Cut, EpochReport
from ordercast.protocols.membership.units import AcceptedValue, Report
from ordercast.protocols.membership.view import (
    MAX_MEMBERS,
    MAX_WHY,
    GroupView,
    Incarnation,
    MembershipConfig,
    NextView,
    Reason,
    is_quorum,
    places_after,
)

DONORS = 2
Reports = Mapping[int, Report]
CutOf = Callable[[Mapping[int, EpochReport], int], Cut]


def accepted_before(reports: Reports) -> tuple[AcceptedValue, int] | None:
    """What an earlier ballot may have decided, and who reports it: of several, that of the highest ballot."""
    found = [(report.accepted, place) for place, report in sorted(reports.items()) if report.accepted is not None]
    return max(found, key=lambda each: each[0][0]) if found else None


def choose(  # noqa: PLR0913
    view: GroupView,
    reports: Reports,
    applicants: Sequence[Incarnation],
    settings: MembershipConfig,
    cut_of: CutOf,
    why: str,
    *,
    broken: Set[tuple[int, int]] = frozenset(),
) -> NextView | None:
    """The next view; None if too few members would go on. `broken`: places that do not hear each other."""
    heard = mask_of(reports)
    stateful = mask_of(place for place, report in reports.items() if report.has_state)
    stay = who_stays(view, reports, stateful, settings.least)
    if stay:
        stay = with_enough_state(stay, stateful)
        if stay.bit_count() < settings.least:  # those that leave stay for now, until others have joined
            stay = with_enough_state(heard, stateful)
        if stay.bit_count() < settings.least:
            return None
    reachable = without_broken_links(stay, stateful, broken, settings)
    unreachable, stay = stay & ~reachable, reachable
    joined = admitted(view, stay, stateful, applicants, settings) if stay else ()
    kept = stay.bit_count()
    new_stateful = places_after(stay, stateful) | (0 if settings.has_state else _joiners(kept, len(joined)))
    return NextView(
        view.number + 1,
        stay,
        joined,
        heard,
        tuple((place, _reason(view, reports, joined, unreachable, place)) for place in members(view.everybody & ~stay)),
        cut_of({place: report.report for place, report in reports.items()}, len(view.members)),
        everybody(kept + len(joined)) & ~new_stateful,
        tuple(reversed(members(places_after(stay, stateful))))[:DONORS] if joined and settings.has_state else (),
        view.next_node + len(joined),
        _sentence(view, reports, stay | unreachable, joined, why, unreachable),
    )


def who_stays(view: GroupView, reports: Reports, stateful: int, least: int = 1) -> int:
    """Those that reported and do not leave; if none of these has the state, those that leave stay for now (V16).

    If there would be fewer than `least`, the oldest of those that leave stay for now. If all members of the view leave,
    nobody stays, and the group ends.
    """
    heard = mask_of(reports)
    leaving = mask_of(place for place, report in reports.items() if report.leaving)
    if leaving == view.everybody:
        return 0
    stay = heard & ~leaving
    for place in members(heard & leaving)[: max(least - stay.bit_count(), 0)]:
        stay |= 1 << place
    return stay if stay & stateful else heard


def with_enough_state(stay: int, stateful: int) -> int:
    """The youngest without state are taken out until those with state are a quorum of those that stay (V16)."""
    while stay & ~stateful and not is_quorum(places_after(stay, stateful), stay.bit_count()):
        stay &= ~(1 << (stay & ~stateful).bit_length() - 1)
    return stay


def without_broken_links(stay: int, stateful: int, broken: Set[tuple[int, int]], settings: MembershipConfig) -> int:
    """Leaves one member of each pair out: the one that hears the fewest, of two the younger (P5).

    Nobody is left out if too few would go on, or too few with the state.
    """
    while pairs := [pair for pair in broken if all(stay >> place & 1 for place in pair)]:
        silent = [place for pair in pairs for place in pair]
        worst = max(silent, key=lambda place: (silent.count(place), place))
        rest = stay & ~(1 << worst)
        if rest.bit_count() < settings.least or not is_quorum(places_after(rest, stateful), rest.bit_count()):
            break
        stay = rest
    return stay


def admitted(
    view: GroupView, stay: int, stateful: int, applicants: Sequence[Incarnation], settings: MembershipConfig
) -> tuple[Incarnation, ...]:
    """The oldest applications, as long as those with state are a quorum of the new view (V15, J5, J9)."""
    found: list[Incarnation] = []
    names = {view.members[place].name for place in members(stay)}
    with_state, size = places_after(stay, stateful), stay.bit_count()
    for applicant in applicants:
        total = size + len(found) + 1
        if total > MAX_MEMBERS or (settings.has_state and not is_quorum(with_state, total)):
            break
        if applicant.name not in names and enters_once(view, applicant):
            found.append(applicant)
            names.add(applicant.name)
    return tuple(found)


def enters_once(view: GroupView, applicant: Incarnation) -> bool:
    """An incarnation that is a member, also one that this view change leaves out, does not join (J9, V25)."""
    return view.place_of(applicant) is None


def _joiners(kept: int, count: int) -> int:
    return everybody(kept + count) & ~everybody(kept)


def _reason(view: GroupView, reports: Reports, joined: Sequence[Incarnation], unreachable: int, place: int) -> Reason:
    if place not in reports:
        name = view.members[place].name
        return Reason.REPLACED if any(member.name == name for member in joined) else Reason.SILENT
    if unreachable >> place & 1:
        return Reason.UNREACHABLE
    return Reason.LEFT if reports[place].leaving else Reason.STATELESS


def _sentence(
    view: GroupView, reports: Reports, stay: int, joined: Sequence[Incarnation], why: str, unreachable: int
) -> str:
    """Why the view changes, for people."""
    silent = view.everybody & ~mask_of(reports)
    gone = view.everybody & ~silent & ~stay
    found = [f"{view.names(silent)} did not answer"] if silent else []
    found += [f"{view.names(gone)} left"] if gone else []
    found += [f"{view.names(unreachable)} left out: {why}"] if unreachable else []
    found += [f"{', '.join(member.name for member in joined)} joined"] if joined else []
    return ("; ".join(found) or why)[:MAX_WHY]
