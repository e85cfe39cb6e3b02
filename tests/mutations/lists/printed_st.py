"""Deliberate breakages of ST as printed: rules read otherwise than they stand."""

from tests.mutations.mutation import changes

ST = changes(
    "protocols.st_paper",
    (
        "the window is one wider",
        "< lowest + min(self.config.window, buffers)",
        "<= lowest + min(self.config.window, buffers)",
    ),
    ("buffers do not close the window", "min(self.config.window, buffers)", "self.config.window"),
    ("no timer for what was sent", "out.append(SetTimer(_wait(packet), self.config.timing.poll))", "pass"),
    (
        "who spoke speaks again",
        "self.stage is Stage.NORMAL and not self.spoke and (",
        "self.stage is Stage.NORMAL and (",
    ),
    ("nobody asks", "wants = self._everybody if self.unfinished() else 0", "wants = 0"),
    ("TREQ alone decides", " or (number == self.expected_to_me[source] and for_me):", ":"),
    (
        "foreign units by PSEQ too",
        "(number == self.expected_to_me[source] and for_me)",
        "number == self.expected_to_me[source]",
    ),
    (
        "gaps are passed over",
        "        elif self.expected_to_me[source] < number:\n            self._detect(unit, source, packet",
        "        elif False:\n            self._detect(unit, source, packet",
    ),
    (
        "statuses show no gap",
        "        elif self.expected_to_me[source] < number:\n            self._detect(unit, source, unit",
        "        elif False:\n            self._detect(unit, source, unit",
    ),
    ("statuses move nothing", "            self.expected[source] = unit.next_seq\n", ""),
    ("AL is of the receiver", "self.accepted_below[of][source] = seq", "self.accepted_below[of][self.me] = seq"),
    ("free buffers are not heard", "        self.free[source] = status.free\n", ""),
    ("SL is kept for ever", "            self.sent = kept\n", ""),
    (
        "levels rise while recovering",
        "if self.stage is not Stage.RECOVERING:\n            self._preacknowledge",
        "if True:\n            self._preacknowledge",
    ),
    ("PAL is not noted", "self.preacknowledged_below[of][unit.source] = seq", "pass"),
    ("no time-out of PRL", "out.append(SetTimer(_held(unit.packet), self.config.timing.poll))", "pass"),
    (
        "the time-out delivers one less",
        "self.preacknowledged[: names.index(name) + 1]:",
        "self.preacknowledged[: names.index(name)]:",
    ),
    ("the time-out forgets nothing", "self.preacknowledged = self.preacknowledged[names.index(name) + 1 :]", "pass"),
    ("nothing is sent again", "for unit in self.sent if _wait(unit.packet) == name]", "for unit in self.sent[:0]]"),
    (
        "every gap says reset",
        "if self.stage is Stage.NORMAL and not self.reset_said:",
        "if self.stage is Stage.NORMAL:",
    ),
    ("what shows a gap is kept", "keeps = self.config.paper.keeps_behind_gap and", "keeps ="),
    ("a reset stops nobody", "        self.stage, self.reset_said = Stage.AGREEING, False\n", ""),
    (
        "sort lines are not lowered",
        "list(map(min, self.sort_from or self.expected, unit.expects))",
        "list(self.sort_from or self.expected)",
    ),
    ("one node is everybody", "if len(self.order) == self._nodes and self.stage is", "if self.order and self.stage is"),
    ("others may differ", "if unit.expects != tuple(self.sort_from) or unit.order != tuple(self.order):", "if False:"),
    ("orders may differ", " or unit.order != tuple(self.order):", ":"),
    ("the sort point is not acknowledged before", "            self._acknowledge_before_sort_point(out)\n", ""),
    ("nothing is retransmitted", "            self._retransmit(said, out)\n", ""),
    (
        "nobody asks in recovery",
        'out.append(SetTimer("request", self.config.timing.repeat))\n        else:',
        "pass\n        else:",
    ),
    (
        "what is put in comes last",
        "place = self.inserted if self.pairs == 1 else len(self.accepted)",
        "place = len(self.accepted)",
    ),
    ("nothing is sorted", "if self.pairs > 1:", "if False:"),
    ("all is sorted", "if self.pairs > 1:", "if True:"),
)

RECOVERY = changes(
    "protocols.st_paper_recovery",
    (
        "the sort point is one later",
        "if unit.packet.seq >= numbers[unit.source]:",
        "if unit.packet.seq > numbers[unit.source]:",
    ),
    ("no sort point is the beginning", "    return len(log)\n", "    return 0\n"),
    ("the first is not lowered", "for unit in log[place:]:", "for unit in log[place + 1 :]:"),
    ("the last number counts", "min(numbers[unit.source], unit.packet.seq)", "unit.packet.seq"),
    (
        "pairs that lack nothing count",
        "receiver.expected_to_me[sender.source] < sender",
        "receiver.expected_to_me[sender.source] <= sender",
    ),
    ("what is for others is lacking", "packet.destinations >> receiver.source & 1\n        and packet", "packet"),
    (
        "what was accepted is lacking",
        ">= receiver.expected_to_me[packet.source]",
        ">= receiver.expected_to_me[packet.source] - 1",
    ),
    (
        "sorted by node, not by order",
        "rank = {source: place for place, source in enumerate(order)}",
        "rank = {source: source for source in order}",
    ),
    ("PSEQ does not sort", "return (rank[unit.source], number) if", "return (rank[unit.source], -number) if"),
    ("what came later is sorted too", " if number < sent_below[unit.source] else (len(order), 0)", ""),
)

MUTATIONS = [*ST, *RECOVERY]
