"""Deliberate breakages of ST, one for each rule and each departure from the paper.

A mutation is a change of source text, compiled into a copy of the modules that the protocol consists of. What does
not notice it does not test it.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple
from unittest.mock import patch

from ordercast.protocols.st import St

MODULES = ("timers", "watched_logs", "st_order", "st_state", "st_normal", "st")
"""What the protocol consists of; each uses only those before it."""


class Mutation(NamedTuple):
    """A breakage: in which module which text, found once, becomes which other text."""

    name: str
    module: str
    old: str
    new: str

    def machine(self) -> type[St]:
        """The protocol with this breakage, as a copy: the real one is not touched."""
        text = source_of(self.module)
        assert text.count(self.old) == 1, f"{self.name}: {self.old!r} is {text.count(self.old)} times in {self.module}"
        return compiled(self.module, text.replace(self.old, self.new))


def source_of(module: str) -> str:
    """The text of one of the modules."""
    spec = find_spec(f"ordercast.protocols.{module}")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text()


def compiled(changed: str = "", text: str = "") -> type[St]:
    """The protocol with the text of one of its modules replaced."""
    copies: dict[str, ModuleType] = {}
    with patch.dict(sys.modules):
        for module in MODULES:
            name = f"ordercast.protocols.{module}"
            copy = ModuleType(name)
            source = text if module == changed else source_of(module)
            exec(compile(source, f"<{module}>", "exec"), copy.__dict__)  # noqa: S102
            sys.modules[name] = copies[module] = copy
    machine = copies["st"].St
    assert isinstance(machine, type)
    return machine


def _in(module: str, *changes: tuple[str, str, str]) -> list[Mutation]:
    return [Mutation(name, module, old, new) for name, old, new in changes]


_SET = "self._set_timer"

ORDER = _in(
    "st_order",
    ("what nobody heard comes anywhere", "            last[at] = False\n", "            pass\n"),
    ("logs do not count", "in pairwise(log):", "in pairwise(log[:0]):"),
    ("numbers do not count", "if packets[at - 1][0] == packets[at][0]:", "if False:"),
    ("prefixes do not count", "if reply.preacknowledged:", "if False:"),
    ("the first of a prefix instead of the last", "log[reply.preacknowledged - 1]", "log[0]"),
    ("one less of a prefix", "log[reply.preacknowledged - 1]", "log[max(0, reply.preacknowledged - 2)]"),
    ("what is for others is lacking too", " and destinations[packet] >> node & 1:", ":"),
    ("cycles are passed over", " if len(order) == len(packets) else None", ""),
)

NORMAL = _in(
    "st_normal",
    ("anything may be submitted", "if not event.destinations or event.destinations & ~self._everybody:", "if False:"),
    ("window one more", "if under_way >= self.config.window:", "if under_way > self.config.window:"),
    ("window without an end", "if under_way >= self.config.window:", "if False:"),
    ("buffers do not count", "return under_way < min(self._free(), *self.free) // self._nodes", "return True"),
    (
        "window at least one",
        "return under_way < min(self._free(), *self.free) // self._nodes",
        "return under_way < max(1, min(self._free(), *self.free) // self._nodes)",
    ),
    ("own buffers do not count", "min(self._free(), *self.free)", "min(self.free)"),
    ("numbers to me count everything", "for node in members(event.destinations):", "for node in range(self._nodes):"),
    ("messages counted as packets", "self.next_message += len(event.lengths)", "self.next_message += 1"),
    (
        "own packets are heard when sent",
        "        self.next_seq += 1\n",
        "        self.next_seq += 1\n        self.expected[self.me] = self.next_seq\n",
    ),
    ("says preacknowledged for accepted", "seqs[0] if seqs else expected[source]", "expected[source]"),
    ("statuses never ask", "wants = self._everybody if", "wants = 0 if"),
    ("statuses always ask", " self.unfinished() else 0", " True else 0"),
    ("stamps stand still", "self.stamp += 1", "self.stamp = 1"),
    (
        "duplicates are taken",
        "if seq < self.expected[source] or number < self.expected_to_me[source]:",
        "if number < self.expected_to_me[source]:",
    ),
    ("never full", "if for_me and self.held() >= self.config.quota * self._nodes:", "if False:"),
    (
        "full one later",
        "self.held() >= self.config.quota * self._nodes",
        "self.held() > self.config.quota * self._nodes",
    ),
    (
        "gaps are passed over",
        "        if number > self.expected_to_me[source]:\n            if for_me:",
        "        if False:\n            if for_me:",
    ),
    ("what shows a gap is thrown away", "self.log.append(packet)\n                self.holds_last = True", "pass"),
    ("what shows a gap is accepted", "self.holds_last = True", "pass"),
    ("what was heard is expected", "self.expected[source] = seq + 1", "self.expected[source] = seq"),
    ("data are not answered", "self.owes = True\n        if for_me:", "if for_me:"),
    (
        "facts of any data count",
        'Discard(unit, "full"))\n            return True\n',
        'Discard(unit, "full"))\n            return True\n        self._learn(source, unit.status, out)\n',
    ),
    ("statuses show no numbers", "self.expected[source] = unit.next_seq", "pass"),
    ("statuses show no gaps", "        if number > self.expected_to_me[source]:\n            return False\n", ""),
    ("who asks is not answered", "        if unit.wants:", "        if False:"),
    ("who does not ask is answered", "        if unit.wants:", "        if True:"),
    ("late statuses count", "if status.stamp <= self.stamps[source]:", "if False:"),
    ("free places are not heard", "self.free[source] = status.free", "pass"),
    (
        "only others are heard",
        "self.accepted.columns[source] = status.expects",
        "if source != self.me: self.accepted.columns[source] = status.expects",
    ),
    ("preacknowledgments are not heard", "self.preacknowledged.columns[source] = status.preacknowledged_below", "pass"),
    (
        "a sender that is no destination learns nothing",
        "if not packet.destinations & self._my_bit:\n                out.append(Reached(PREACKNOWLEDGED, packet))",
        "if False:\n                out.append(Reached(PREACKNOWLEDGED, packet))",
    ),
    ("what is left is delivered at once", "while self.old and self.old[0][0] < finished_below:", "while self.old:"),
    (
        "what is left is delivered one epoch early",
        "self.old[0][0] < finished_below",
        "self.old[0][0] <= finished_below",
    ),
    (
        "what is left waits for one other",
        "finished_below = min(self.epoch_seen)",
        "finished_below = sorted(self.epoch_seen)[1]",
    ),
    (
        "what is left is not for me alone",
        "            if packet.destinations & self._my_bit:\n",
        "            if True:\n",
    ),
)

STATE = _in(
    "st_state",
    (
        "preacknowledged by the destinations",
        "WatchedLogs(2, accepted_below, by_all=self._everybody)",
        "WatchedLogs(2, accepted_below)",
    ),
    (
        "acknowledged by everybody",
        "WatchedLogs(2, preacknowledged_below)",
        "WatchedLogs(2, preacknowledged_below, self._everybody)",
    ),
    ("no hurry", "max(1, config.window // 2)", "10**9"),
    ("what is left is no debt", "            or self.old\n", ""),
    ("what was sent is no debt", "            or self.accepted.rows[OWN]\n", ""),
    ("what waits is no debt", "            self.waiting\n            or ", "            "),
    ("a snapshot forgets who answered", '"answered",', ""),
    ("a snapshot forgets its patience", '"patience", ', ""),
    ("a snapshot forgets what came early", "tuple(self.future),", "(),"),
    ("a snapshot forgets contents", "tuple(sorted(self.contents.items())),", "(),"),
    ("a snapshot forgets its replies", ', "replies",', ","),
    (
        "sources of what is missing are not waited for",
        "(self._everybody & ~(replied & self.done) | sources)",
        "(self._everybody & ~(replied & self.done))",
    ),
    ("contents take no place", " + len(self.contents) + len(self.future)", " + len(self.future)"),
    ("what came early takes no place", " + len(self.contents) + len(self.future)", " + len(self.contents)"),
)

RECOVERY = _in(
    "st",
    ("goes on after giving up", "        if self.aborted:\n            return out\n", ""),
    ("speaks when drained though stopped", "elif any(self.unsaid) and not self.frozen:", "elif any(self.unsaid):"),
    ("never speaks when drained", "elif any(self.unsaid) and not self.frozen:", "elif False:"),
    ("no status timer", f'{_SET}("status", self.config.timing.status, out)', "pass"),
    ("done proves that an epoch is finished", "if type(unit) is not ResetDone:  #", "if True:  #"),
    ("its own words count", "            if unit.source != self.me:\n", "            if True:\n"),
    ("silence is never broken", "self.unanswered[source] = 0", "pass"),
    ("what comes early is thrown away", "            self._keep_for_later(unit)\n", "            pass\n"),
    ("old units are taken", "elif epoch != self.epoch:", "elif epoch > self.epoch:"),
    ("epochs are not looked at", "if epoch == self.epoch + 1:", "if False:"),
    ("contents are thrown away", "                self._keep_content(unit.packet, out)\n", "                pass\n"),
    ("logs grow for ever", "elif len(self.log) > self.config.log_limit:", "elif False:"),
    ("logs are cut one early", "len(self.log) > self.config.log_limit", "len(self.log) >= self.config.log_limit"),
    ("half a window is not said", "elif self.unsaid[unit.source] >= self._prompt:", "elif False:"),
    (
        "all early statuses are kept",
        "        if type(unit) is Ready:\n            self.future",
        "        if False:\n            self.future",
    ),
    (
        "a reply says nothing of what was sent",
        "tuple([(packet.seq, packet.destinations) for packet in self.accepted.rows[OWN]]),",
        "(),",
    ),
    ("a reply says nothing of its prefix", "            self.preacknowledged_count,\n", "            0,\n"),
    (
        "a reply leaves the delivered out",
        "for packet in self.log]),",
        "for packet in self.log[self.acknowledged_count :]]),",
    ),
    ("an own packet is lost with its echo", "self.contents[self.me, packet.seq] = packet", "pass"),
    (
        "no reset timer",
        f'{_SET}("reset", self.config.timing.reset, out)\n        self._take',
        "pass\n        self._take",
    ),
    ("no second reset timer", f'{_SET}("reset", self.config.timing.reset * self.patience, out)', "pass"),
    ("the reset timer fires for nothing", 'elif name == "reset" and self.frozen:', "elif False:"),
    ("hearsay is not asked about", "if not self.frozen and self.heard_of_more():", "if False:"),
    ("hearsay is asked about once", "            self.hearsay_timer = False\n", ""),
    ("the answer timer fires for nothing", "            self.answered = False\n", "            pass\n"),
    ("told, it does not stop", 'self._freeze("told", out)', "return"),
    (
        "done is answered",
        "            if type(unit) is ResetReply:\n                self._help_late(out)",
        "            if type(unit) is not ResetNeed:\n                self._help_late(out)",
    ),
    ("who is late is always answered", "if not self.answered:", "if True:"),
    ("who is late is not answered", "elif epoch == self.epoch - 1:", "elif False:"),
    (
        "who is late is told what it knows",
        "elif type(unit) is ResetNeed and not unit.done & self._my_bit:",
        "elif type(unit) is ResetNeed:",
    ),
    ("all answer at once, again and again", "if need.patience == 1:", "if True:"),
    ("nobody answers at once", "if need.patience == 1:", "if False:"),
    (
        "the help timer fires for nothing",
        "            needs, self.unhelped = self.unhelped, {}\n",
        "            needs = {}\n",
    ),
    ("helps again and again", "needs, self.unhelped = self.unhelped, {}", "needs = self.unhelped"),
    (
        "a need of an old epoch is taken for one of this",
        "        if need.epoch != self.epoch:\n",
        "        if False:\n",
    ),
    ("a need says nothing of patience", ", self.done, self.patience)))", ", self.done)))"),
    (
        "the timer is quicker than the answer",
        '            self._set_timer("reset", self.config.timing.reset, out)  # anew',
        "            pass  # anew",
    ),
    ("a reply may change", "        if self.replies[reply.source] is not None:\n            return\n", ""),
    (
        "a second reply moves something",
        "is not None:\n            return\n        self.replies",
        "is not None:\n            self.moved = True\n            return\n        self.replies",
    ),
    ("a contradiction is passed over", 'self._abort("the channel did not keep one order", out)', "pass"),
    ("asks for what it has", " | set(self.contents)", ""),
    ("asks for what others lack", "if destined[key] & self._my_bit and key not in have", "if key not in have"),
    (
        "does not ask at once",
        "        if self.missing:\n            self._say_need(out)",
        "        if self.missing:\n            pass",
    ),
    (
        "keeps what is for others",
        "if not packet.destinations & self._my_bit or key in self.contents:",
        "if key in self.contents:",
    ),
    ("keeps what it has", "if packet.seq >= self.expected[packet.source]:", "if True:"),
    (
        "keeps one too few",
        "if packet.seq >= self.expected[packet.source]:",
        "if packet.seq > self.expected[packet.source]:",
    ),
    (
        "replies as often as asked",
        "if not need.has & self._my_bit and not self.reply_said:",
        "if not need.has & self._my_bit:",
    ),
    ("never replies again", "if not need.has & self._my_bit and not self.reply_said:", "if False:"),
    ("copies as often as asked", "if source == self.me} - self.resent", "if source == self.me}"),
    ("never copies", "if packet.seq in wanted:", "if False:"),
    ("copies everything", "if packet.seq in wanted:", "if True:"),
    (
        "copies for any source",
        "{seq for source, seq in need.missing if source == self.me}",
        "{seq for _, seq in need.missing}",
    ),
    (
        "never says again that it is done",
        "if self.done & self._my_bit and not need.done & self._my_bit and not self.done_said:",
        "if False:",
    ),
    ("says that it is done when it is not", "if self.done & self._my_bit and not need.done", "if not need.done"),
    ("what was held counts as accepted", "accepted = len(self.log) - self.holds_last", "accepted = len(self.log)"),
    (
        "done when two are",
        "if self.done == self._everybody:",
        "if self.done & self._my_bit and self.done.bit_count() > 1:",
    ),
    ("preacknowledged twice", "for packet in self.log[:risen]}", "for packet in self.log[:0]}"),
    ("delivered twice", "for packet in mine[delivered:])", "for packet in mine)"),
    ("what was sent to others is forgotten", "                self.old.append((epoch, packet))\n", ""),
    (
        "what was preacknowledged by others is forgotten",
        "        self.old.extend((epoch, packet) for packet in self.preacknowledged.rows[OWN])\n",
        "",
    ),
    ("numbers do not go on", "self.expected = [reply.next_seq for reply in replies]", "pass"),
    ("numbers to me do not go on", "self.expected_to_me = [reply.next_seq_to[self.me] for reply in replies]", "pass"),
    ("what waited to be preacknowledged still does", "            seqs.clear()\n", "            pass\n"),
    ("the reset timer runs on", 'out.append(CancelTimer("reset"))', "pass"),
    ("nobody speaks in a new epoch", "        if self.stamp == stamp:\n            self._send_ready(out)\n", ""),
    (
        "speaks twice in a new epoch",
        "        if self.stamp == stamp:\n            self._send_ready(out)\n",
        "        self._send_ready(out)\n",
    ),
    ("what came early is forgotten", "        for unit in future:\n", "        for unit in ():\n"),
    (
        "debts are paid though stopped",
        "if self.frozen or not (self.owes or self.unfinished()):",
        "if not (self.owes or self.unfinished()):",
    ),
    ("speaks twice", "        if self.status_paid:\n", "        if False:\n"),
    ("asks once", "if not self.aborted and self.unfinished():", "if False:"),
    ("no patience", "self.patience = min(MOST_PATIENT, 2 * self.patience)", "self.patience = 1"),
    ("endless patience", "min(MOST_PATIENT, 2 * self.patience)", "2 * self.patience"),
    ("what moves is not seen", "        if self.moved:\n", "        if False:\n"),
    ("never gives up", "self.unanswered[node] += 1", "pass"),
    ("gives up one early", "self.unanswered[node] > self.config", "self.unanswered[node] >= self.config"),
    (
        "gives up without delivering",
        "        out += [Deliver(packet) for packet in self.preacknowledged.rows[LOG]]\n",
        "",
    ),
    (
        "gives up without delivering what is left",
        "        out += [Deliver(packet) for _, packet in self.old if packet.destinations & self._my_bit]\n",
        "",
    ),
    ("gives up and goes on", "        self.aborted = True\n", "        pass\n"),
)

MUTATIONS = [*ORDER, *NORMAL, *STATE, *RECOVERY]
