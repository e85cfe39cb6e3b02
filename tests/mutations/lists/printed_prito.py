"""Deliberate breakages of PriTO as printed: rules read otherwise than they stand."""

from tests.mutations.mutation import changes

MUTATIONS = changes(
    "protocols.prito_paper",
    (
        "the window is one wider",
        "for unit in self.sent) < self.config.window",
        "for unit in self.sent) <= self.config.window",
    ),
    (
        "statuses count in the window",
        "sum(isinstance(unit, PrintedData) and unit.seq >= known for",
        "sum(unit.seq >= known for",
    ),
    ("who wants is not answered", "if unit.wants and source != self.me:", "if False:"),
    (
        "stopped nodes accept",
        "        if self.stage is not Stage.NORMAL:\n            out",
        "        if False:\n            out",
    ),
    ("duplicates are gaps", "elif unit.seq < self.expected[source]:", "elif False:"),
    ("gaps are accepted", "elif unit.seq > self.expected[source]:", "elif False:"),
    (
        "gaps stop nobody",
        '            self._stop(f"number {self.expected[source]} of {name_of(source)} is missing", out)\n',
        "",
    ),
    ("levels rise in a synchronisation", "        if not self.synchronising:\n", "        if True:\n"),
    ("no pseudo-PDU", "        self.accepted.append(Entry(unit, pseudo=True))\n", ""),
    (
        "not sorted in",
        "insert_by_priority(Entry(unit, pseudo=False), self.preacknowledged, self.accepted)",
        "pass",
    ),
    ("told twice", "if unit.seq >= self.told_accepted[source]:", "if True:"),
    ("AL is of the receiver", "self.accepted_below[of][source] = seq", "self.accepted_below[of][self.me] = seq"),
    (
        "who expects it has it",
        "log[0].unit.seq < below[log[0].unit.source]):",
        "log[0].unit.seq <= below[log[0].unit.source]):",
    ),
    ("PAL is not noted", "self.preacknowledged_below[of][source] = seq", "pass"),
    ("PEQ stands still", "                self.own_preacknowledged_below[source] = unit.seq + 1\n", ""),
    (
        "SL is kept for ever",
        "        self.sent = [unit for unit in self.sent if unit.seq >= self.own_preacknowledged_below[self.me]]\n",
        "",
    ),
    (
        "delivered before it is acknowledged",
        "while log and not log[0].pseudo and self.is_acknowledged(log[0].unit):",
        "while log and not log[0].pseudo:",
    ),
    ("no timer for what is overtaken", "out.append(SetTimer(_run_timer(unit), self.config.timing.run))", "pass"),
    ("the timer is not stopped", "out.append(CancelTimer(_run_timer(unit)))", "pass"),
    ("nothing is lost", "out += [Stopped(why), Send(Lost(self.me, tuple(self.expected)))]", "out += [Stopped(why)]"),
    ("one expectation is all", "        if all(self.expectations):\n", "        if any(self.expectations):\n"),
    ("the highest is received by all", "received_by_all = [min(numbers)", "received_by_all = [max(numbers)"),
    (
        "the highest is rejected",
        "below = [min(numbers) for numbers in zip(*self.rejections",
        "below = [max(numbers) for numbers in zip(*self.rejections",
    ),
    ("contradictions are passed over", "if any(map(int.__lt__, below, self.own_preacknowledged_below)):", "if False:"),
    ("nothing is thrown away", "        self._go_back(below)\n", ""),
    ("nothing is broadcast again", "        self._broadcast_again(out)\n", ""),
    ("all is broadcast again", "if unit.seq >= self.expected[self.me]]", "]"),
    ("AL stays above", "[min(seq, limit) for seq in row]", "list(row)"),
    ("runs are never synchronised", "        if self.expired and not self.synchronising:\n", "        if False:\n"),
    ("answers to oneself", "if unit.source != self.me and not self.pack_said:", "if not self.pack_said:"),
    ("one is everybody", "if self.heard == self._everybody and not self.ack_said:", "if not self.ack_said:"),
    ("one agrees for all", "        if self.agreed != self._everybody:\n            return\n", ""),
    ("no merging of what timed out", "        self.timed_out = list(map(max, self.timed_out, unit.timed_out))\n", ""),
    (
        "no merging of what is pre-acknowledged",
        "list(map(max, self.highest_preacknowledged, unit.preacknowledged_below))",
        "list(self.highest_preacknowledged)",
    ),
    ("a run ends one early", "log[: late[-1] + 1] if late else ()", "log[: late[-1]] if late else ()"),
    ("a run ends at the first", "log[: late[-1] + 1] if late else ()", "log[: late[0] + 1] if late else ()"),
    ("a synchronisation never ends", "        self.synchronising = self.pack_said = self.ack_said = False\n", ""),
)
