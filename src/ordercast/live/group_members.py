"""Asks a running group who its members are, without becoming one of them.

Any member answers with its view and the addresses in it; each of these is then asked, too, so that the answer says who
of them is there.
"""

import asyncio
import secrets
import socket
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from ordercast.live.host.group_terms import read_terms
from ordercast.live.settings import NETWORK_MTU, order_of
from ordercast.live.transport.addresses import LOOPBACK, Address, address_of, require_one_network
from ordercast.live.transport.endpoint import Endpoint
from ordercast.live.transport.sockets import open_socket, socket_address
from ordercast.live.why_not_open import describe_rejections
from ordercast.model.errors import ConfigError, JoinError
from ordercast.protocols.membership.units import Find, Found
from ordercast.wire.codec import Codec, Malformed
from ordercast.wire.datagram import HANDSHAKE, UNKNOWN, Rejection, pack_records, unpack_records
from ordercast.wire.inspection import INSPECTION, Inspect, Inspected
from ordercast.wire.keys import GroupKeys
from ordercast.wire.outside import Outside
from ordercast.wire.seal import seal_for
from ordercast.wire.unit_validation import is_valid_outside

_NAME = "-"  # of one that asks and does not join
_FIRST_REPEAT, _LAST_REPEAT = 0.05, 0.5  # seconds between two questions
PATIENCE = 1.0
"""Seconds after the first answer in which the other members have to answer."""


class Presence(StrEnum):
    """What a member of the latest view says of itself."""

    PRESENT = "present"
    BLOCKED = "blocked"
    """It does not reach enough members to agree on the next view."""
    BEHIND = "behind"
    """It answers, and is in an earlier view."""
    SILENT = "silent"
    """It does not answer."""


class FoundMember(msgspec.Struct, frozen=True):
    """One member of a group, as it was found."""

    place: int
    """In the view; 0 is the oldest member."""
    name: str | None
    """None: it does not answer, and the others run a version of ordercast that does not name it."""
    address: str
    incarnation: str | None
    """Another one after each start; in hexadecimal digits."""
    presence: Presence


class FoundGroup(msgspec.Struct, frozen=True):
    """A group, as it was found."""

    group: str
    order: str | None
    """None: the members run another version of ordercast."""
    view: int
    blocked: bool
    """None of the members that answer reaches enough of the others to agree on the next view."""
    members: tuple[FoundMember, ...]


async def find_members(group: str, contacts: Sequence[Address], keys: GroupKeys | None, timeout: float) -> FoundGroup:
    """Asks at these addresses. Raises `JoinError` if nobody answers within `timeout` seconds."""
    require_one_network({str(address): address for address in contacts})
    question = _Question(group, contacts, keys)
    try:
        return await question.answered(timeout)
    finally:
        question.close()


async def inspect_members(
    group: str, contacts: Sequence[Address], keys: GroupKeys | None, timeout: float
) -> tuple[FoundGroup, dict[int, Inspected]]:
    """The same, and how each member of the latest view is, by place: those that answer, and know the question."""
    require_one_network({str(address): address for address in contacts})
    question = _Question(group, contacts, keys, inspects=True)
    try:
        found = await question.answered(timeout)
        return found, question.inspected()
    finally:
        question.close()


class _Question:
    """Asks again and again, each time under a new number, and collects answers. Used inside one event loop."""

    def __init__(
        self, group: str, contacts: Sequence[Address], keys: GroupKeys | None, *, inspects: bool = False
    ) -> None:
        """`inspects`: members are asked how they are, too."""
        self._group, self._contacts, self._inspects = group, contacts, inspects
        self._inspected: dict[tuple[int, int], Inspected] = {}  # by view and place
        self._seal, self._codec = seal_for(group, keys), Codec("spo", (*INSPECTION, Outside))
        own = open_socket(Address(_any_host(contacts[0]), 0))
        self._port = own.getsockname()[1]
        loopback = contacts[0].is_loopback()
        self._endpoint = Endpoint(own, contacts, segment=0 if loopback else NETWORK_MTU)
        self._incarnation, self._nonce = secrets.randbits(64) or 1, secrets.randbits(62)
        self._first_nonce, self._counter = self._nonce, 0
        self._answers: dict[Address, Found] = {}
        self._latest: Found | None = None
        self._dropped: Counter[str] = Counter()
        self._first_answer = 0.0
        self._complete = asyncio.Event()
        self._endpoint.start(self._receive, lambda: None, lambda: None)

    def close(self) -> None:
        self._endpoint.close()

    async def answered(self, timeout: float) -> FoundGroup:
        """What was found when all members of the latest view have answered, or time is up."""
        loop = asyncio.get_running_loop()
        repeat, begun = _FIRST_REPEAT, loop.time()
        while not self._complete.is_set():
            for address in self._missing():
                self._ask(address)
            until = begun + timeout if self._latest is None else min(begun + timeout, self._first_answer + PATIENCE)
            try:
                await asyncio.wait_for(self._complete.wait(), min(repeat, until - loop.time()))
            except TimeoutError:
                if loop.time() >= until:
                    break
            repeat = min(2 * repeat, _LAST_REPEAT)
        if self._latest is None:
            raise JoinError(self._why_not(timeout))
        return self._found(self._latest)

    def inspected(self) -> dict[int, Inspected]:
        """How members of the latest view are, by place."""
        assert self._latest is not None, "there is an answer"
        view = self._latest.view
        return {place: found for (number, place), found in self._inspected.items() if number == view}

    def _missing(self) -> list[Address]:
        """Those that have not answered: of the latest view that is known, or the contacts."""
        if self._latest is None:
            return list(self._contacts)
        addresses, view = map(address_of, self._latest.addresses), self._latest.view
        return [
            address
            for place, address in enumerate(addresses)
            if address not in self._answers or (self._inspects and (view, place) not in self._inspected)
        ]

    def _ask(self, address: Address) -> None:
        try:
            own = Address(_own_host(address), self._port)
        except OSError as error:
            self._endpoint.not_sent[error.strerror or type(error).__name__] += 1
            return
        self._nonce += 1
        find = Find(self._group, _NAME, self._incarnation, self._nonce)
        questions: list[Outside | Inspect] = [Outside(str(own), find)]
        if self._inspects:
            questions.append(Inspect(str(own), self._group, self._incarnation, self._nonce))
        for question in questions:  # each in a datagram of its own: members of other versions know only the first
            body = pack_records([self._codec.encode(question)])
            counter, self._counter = self._counter, self._counter + 1
            self._endpoint.send(self._seal.seal(HANDSHAKE, UNKNOWN, self._incarnation, counter, body), address)

    def _receive(self, data: bytes | memoryview) -> None:
        datagram = self._seal.open(data)
        if isinstance(datagram, Rejection):
            self._dropped[datagram] += 1
            return
        records = unpack_records(datagram.body)
        for record in records if not isinstance(records, Rejection) else ():
            try:
                message = self._codec.decode(record)
            except Malformed:
                continue
            if isinstance(message, Inspected):
                if self._is_mine(message):
                    self._inspected[message.view, message.place] = message
                    self._finish()
            elif isinstance(message, Outside) and isinstance(message.unit, Found) and self._is_answer(message.unit):
                self._take(message.unit)

    def _is_mine(self, unit: Found | Inspected) -> bool:
        """It answers a question of this process."""
        return unit.incarnation == self._incarnation and self._first_nonce < unit.nonce <= self._nonce

    def _finish(self) -> None:
        if self._latest is not None and not self._missing():
            self._complete.set()

    def _is_answer(self, unit: Found) -> bool:
        return (
            (unit.group, unit.name) == (self._group, _NAME)
            and self._is_mine(unit)
            and is_valid_outside(unit)
            and unit.member.is_well_formed()
            and all(map(_is_address, unit.addresses))
        )

    def _take(self, unit: Found) -> None:
        """The latest view counts; members of earlier ones are behind, or are not in it any more."""
        latest = self._latest
        if latest is None:
            self._first_answer = asyncio.get_running_loop().time()
        self._answers[address_of(unit.addresses[unit.place])] = unit
        if latest is None or unit.view > latest.view:
            self._latest = unit
            for address in self._missing():
                self._ask(address)
        self._finish()

    def _found(self, latest: Found) -> FoundGroup:
        members = tuple(self._member(place, address_of(text), latest) for place, text in enumerate(latest.addresses))
        return FoundGroup(
            group=self._group,
            order=_order_of(latest),
            view=latest.view,
            blocked=all(member.presence is not Presence.PRESENT for member in members),
            members=members,
        )

    def _member(self, place: int, address: Address, latest: Found) -> FoundMember:
        unit = self._answers.get(address)
        if unit is None:
            name = latest.names[place] if latest.names else None
            return FoundMember(place, name, str(address), None, Presence.SILENT)
        presence = Presence.BLOCKED if unit.blocked else Presence.PRESENT
        presence = Presence.BEHIND if unit.view < latest.view else presence
        return FoundMember(place, unit.member.name, str(address), f"{unit.member.number:016x}", presence)

    def _why_not(self, timeout: float) -> str:
        asked = ", ".join(map(str, self._contacts))
        not_sent = "; ".join(f"nothing could be sent: {reason}" for reason in self._endpoint.not_sent)
        hint = (
            describe_rejections(self._dropped)
            or not_sent
            or ("check that the group is open, the addresses, the name of the group, and that the key is the group's")
        )
        return f"no member of the group {self._group} answered within {timeout:g} s at {asked}; {hint}"


def _order_of(found: Found) -> str | None:
    """By the name that users give it."""
    try:
        return order_of(read_terms(found.terms).parameters.protocol)
    except JoinError:
        return None


def _any_host(contact: Address) -> str:
    """Where answers can arrive: on loopback, or at any interface."""
    if contact.is_loopback():
        return "::1" if ":" in contact.host else LOOPBACK
    return "::" if ":" in contact.host else "0.0.0.0"  # noqa: S104 (answers are authenticated)


def _own_host(contact: Address) -> str:
    """The address of this machine from which the system sends to this one: answers go there."""
    family = socket.AF_INET6 if ":" in contact.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as tried:
        tried.connect(socket_address(contact))
        zone = contact.host.partition("%")[2]
        return str(tried.getsockname()[0]).partition("%")[0] + (f"%{zone}" if zone else "")


def _is_address(text: str) -> bool:
    try:
        address_of(text)
    except ConfigError:
        return False
    return True
