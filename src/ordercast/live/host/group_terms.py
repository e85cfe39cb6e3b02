"""What a group tells those that join it: its parameters, and the session in which it was opened.

A joiner takes both from the members that it finds. The session names the run in traces: all members of a group record
under one name, whenever they joined.
"""

from typing import Any, NamedTuple

import msgspec

from ordercast.live.host.parameters import Parameters
from ordercast.live.session.parameter_comparison import difference
from ordercast.model.errors import JoinError
from ordercast.protocols.membership.applicants import Terms

_PARAMETERS, _SESSION = "parameters", "session"


class GroupTerms(NamedTuple):
    """What all members have in common."""

    parameters: Parameters
    session: int
    """The tag of the session in which the group was opened."""

    def encoded(self) -> Terms:
        """As members compare them."""
        return ((_PARAMETERS, _text(self.parameters)), (_SESSION, f"{self.session:016x}"))

    def are_of(self, terms: Terms) -> bool:
        """Whether these are the terms of the same group, opened at the same time."""
        return dict(terms).get(_SESSION) == f"{self.session:016x}"


def read_terms(terms: Terms) -> GroupTerms:
    """What a member has told; raises `JoinError` if it cannot be used."""
    found = dict(terms)
    try:
        told: dict[str, Any] = msgspec.json.decode(found[_PARAMETERS])
        parameters = msgspec.convert(told["derived"], Parameters)
        return GroupTerms(parameters, int(found[_SESSION], 16))
    except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        raise JoinError(
            f"the group has parameters that cannot be used here ({error}): run the same version of ordercast everywhere"
        ) from error


def require_equal(own: Parameters, us: str, group: Parameters) -> None:
    """Raises `JoinError` with the difference, if there is one."""
    ours, theirs = _text(own), _text(group)
    if ours != theirs:
        raise JoinError(
            f"{difference(ours, us, theirs, 'the group')}; leave the settings out to take those of the group, or make "
            "them equal"
        )


def _text(parameters: Parameters) -> str:
    return msgspec.json.encode(parameters.compared(), order="sorted").decode()
