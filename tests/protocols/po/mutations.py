"""Deliberate breakages of PO: what does not notice one does not test it."""

from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ordercast.protocols import po
from ordercast.protocols.po import Po

SOURCE = Path(str(po.__file__)).read_text()


def compiled(text: str = SOURCE) -> type[Po]:
    """The protocol from this text; the real one is not touched."""
    copy = ModuleType("ordercast.protocols.po")
    exec(compile(text, "<po, changed>", "exec"), copy.__dict__)  # noqa: S102
    machine = copy.Po
    assert isinstance(machine, type)
    return machine


class Mutation(NamedTuple):
    """A rule, and what it is broken into: text that stands in the module exactly once becomes other text."""

    name: str
    old: str
    new: str

    def machine(self) -> type[Po]:
        """The protocol with this change."""
        assert SOURCE.count(self.old) == 1, f"{self.name}: the text to change stands {SOURCE.count(self.old)} times"
        return compiled(SOURCE.replace(self.old, self.new))


# fmt: off
MUTATIONS = (
    Mutation("any destinations are taken",
        "if event.destinations != self._everybody:",
        "if not event.destinations:"),
    Mutation("what is for everybody is refused",
        "if event.destinations != self._everybody:",
        "if True:"),
    Mutation("what is submitted is forgotten",
        "super()._submit(event)",
        "pass"),
    Mutation("what comes ahead of a gap is held",
        '        del number\n        out.append(Discard(unit, "gap"))',
        "        super()._hold(unit, number, out)"),
    Mutation("what comes ahead of a gap vanishes",
        'out.append(Discard(unit, "gap"))',
        "pass"),
    Mutation("only the first missing number is asked for",
        "(source, ((first, high),))",
        "(source, ((first, first + 1),))"),
    Mutation("a first number that was asked for is asked for at once again",
        "if since[source] <= first < high",
        "if first < high"),
    Mutation("what is not missing is asked for",
        "<= first < high and",
        "<= first and"),
    Mutation("what would be refused is asked for",
        " and self.places[source] < self.config.quota",
        ""),
    Mutation("what comes behind an old gap asks when the cooldown ends",
        "if self.requested_below[source] <= self.expected_to_me[source] <",
        "if self.expected_to_me[source] <"),
    Mutation("a new gap waits for the repeat",
        "if self.requested_below[source] <= self.expected_to_me[source] <",
        "if self.requested_below[source] < self.expected_to_me[source] <"),
    Mutation("a copy that is accepted asks for those behind it",
        "        del source\n",
        "        self._ask_if_new(source, out)\n"),
    Mutation("no packet shows a gap",
        "        self._ask_if_new(unit.source, out)\n\n    def _receive",
        "\n    def _receive"),
    Mutation("no status shows a gap",
        "super()._receive_ready(unit, out)\n        self._ask_if_new(unit.source, out)",
        "super()._receive_ready(unit, out)"),
    Mutation("a status shows a gap where there is none",
        " < self.seen_to_me[source]:",
        ":"),
    Mutation("a new gap waits for the cooldown",
        "            else:\n                self._request_new(out)",
        ""),
    Mutation("the cooldown is not heeded",
        "if self.cooling:",
        "if False:"),
    Mutation("a gap within the cooldown is forgotten",
        "self.new_gap = True",
        "pass"),
    Mutation("there is no cooldown",
        "self.cooling = True",
        "pass"),
    Mutation("the cooldown is not timed",
        'self._set_timer("cooldown", self.config.timing.cooldown, out)',
        "pass"),
    Mutation("the request is not sent",
        "self._send_ready(out, missing=missing)",
        "pass"),
    Mutation("a lost request is not repeated",
        'self._set_timer("repeat", self.config.timing.repeat, out)',
        "pass"),
    Mutation("the repeat is put off by each unit",
        "if not self.repeat_timer:",
        "if True:"),
    Mutation("patience from before is kept",
        "self.repeat_timer, self.repaired, self.repeat_patience = True, False, 1",
        "self.repeat_timer, self.repaired = True, True"),
    Mutation("what was asked for is not noted",
        "self.requested_below[source] = first + 1",
        "pass"),
    Mutation("what was asked for is noted one too low",
        "self.requested_below[source] = first + 1",
        "self.requested_below[source] = first"),
    Mutation("all known is noted as asked for",
        "for source, ((first, _),) in missing:\n            self.requested_below[source] = first + 1",
        "for source, ((_, high),) in missing:\n            self.requested_below[source] = high"),
    Mutation("only what is asked for by name is sent again",
        "for packet in lacking:",
        "for packet in [packet for packet in lacking if packet.seq < ranges[0][1]]:"),
    Mutation("only the lost packet is sent again",
        "for packet in lacking:",
        "for packet in [lacking[0]]:"),
    Mutation("a late request is answered",
        " or lacking[0].seq != first",
        ""),
    Mutation("a request for nothing brings it down",
        "not lacking or lacking",
        "lacking"),
    Mutation("a request without numbers brings it down",
        "for first, _ in ranges[:1]:",
        "for first in [ranges[0][0]]:"),
    Mutation("every request is answered",
        " or first in self.guarded:",
        ":"),
    Mutation("nothing goes back while the guard is up",
        " or first in self.guarded:",
        " or self.guarded:"),
    Mutation("the guard is not timed",
        'self._set_timer("guard", self.config.timing.guard, out)',
        "pass"),
    Mutation("the guard is put off by each request",
        "if not self.guarded:",
        "if True:"),
    Mutation("the guard is never up",
        "self.guarded.add(packet.seq)",
        "pass"),
    Mutation("only the first copy is guarded",
        "self.guarded.add(packet.seq)",
        "self.guarded.add(first)"),
    Mutation("copies pass for first transmissions",
        "again=True",
        "again=False"),
    Mutation("copies say nothing new",
        "Data(packet, self._status())",
        "Data(packet, Status(self.stamp, tuple(self.expected)))"),
)
# fmt: on
