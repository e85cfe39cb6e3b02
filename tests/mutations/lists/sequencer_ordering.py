"""Deliberate breakages of the sequencer's part."""

from tests.mutations.mutation import changes

MUTATIONS = changes(
    "protocols.sequencer_ordering",
    ("only the last id is a duplicate (S4)", "if seq < due or seq in offers:", "if seq == due - 1 or seq in offers:"),
    (
        "the first id is a duplicate (S1)",
        "if seq < due or seq in offers:",
        "if seq <= 0 or seq < due or seq in offers:",
    ),
    ("duplicates of what waits count twice", "if seq < due or seq in offers:", "if seq < due:"),
    ("offers without an end", "if seq >= due + self.config.window:", "if False:"),
    ("window one less", "if seq >= due + self.config.window:", "if seq >= due + self.config.window - 1:"),
    (
        "each sender's order is not kept",
        "        if seq == due:\n            self.turns.append(source)\n",
        "        if True:\n            self.ordered_below[source] = seq\n            self.turns.append(source)\n",
    ),
    ("a duplicate is not answered (S3)", "            self._answer_duplicate(source, unit.packet.seq, out)\n", ""),
    (
        "a duplicate is answered even to who has it",
        "if number is not None and number >= self.rows[source]:",
        "if number is not None:",
    ),
    ("who has it hears nothing (W8)", "        else:\n            self._publish(out, to=source)\n", ""),
    ("a full history is overrun", "and not self.sync_phase and not self.is_full():", "and not self.sync_phase:"),
    (
        "numbers are given while the group synchronises",
        "while self.turns and not self.sync_phase and",
        "while self.turns and",
    ),
    (
        "what waits behind is forgotten",
        "            if self.ordered_below[source] in self.held[source]:\n",
        "            if False:\n",
    ),
    (
        "senders do not take turns",
        "            if self.ordered_below[source] in self.held[source]:\n                self.turns.append(source)",
        (
            "            if self.ordered_below[source] in self.held[source]:\n"
            "                self.turns.appendleft(source)"
        ),
    ),
    (
        "own row of the table stays (Q8)",
        "self.known_below = self.rows[self.me] = number + 1",
        "self.known_below = number + 1",
    ),
    ("numbers of the history are not kept", "            self.number_of[source, packet.seq] = number\n", ""),
    (
        "nobody is asked when it is full",
        "            self.fullness = Fullness.ASKED\n            self._publish(out, wants=self._holds_back())\n",
        "            self.fullness = Fullness.ASKED\n",
    ),
    (
        "asked at once when it is full",
        'self.set_timer("status", self.config.timing.cooldown, out)',
        "self._status_due(out)",
    ),
    ("waits anew at each offer when it is full", "and self.fullness is Fullness.NOT:", "and True:"),
    ("waits when full only once", "                self.fullness = Fullness.NOT\n", ""),
    ("asks all when full", "wants=self._holds_back()", "wants=self.laggards()"),
    ("asks one less when full", "if self.rows[node] < half)", "if self.rows[node] < half - 1)"),
    ("never synchronises", "        elif self.fullness is Fullness.ASKED:\n", "        elif False:\n"),
    ("synchronises at once", "        elif self.fullness is Fullness.ASKED:\n", "        elif True:\n"),
    ("direct packets are broadcast again", "            if was_direct:\n", "            if False:\n"),
    ("orders one too high", "first = end - len(direct)", "first = end - len(direct) + 1"),
    ("orders after the broadcast that follows", "                self._send_order(direct, number, out)\n", ""),
    (
        "retransmissions without an end",
        "stop_here = min(stop, self.received_below, start + MOST_COPIES - copies)",
        "stop_here = min(stop, self.received_below)",
    ),
    (
        "each range has its own bound",
        "start + MOST_COPIES - copies)\n            for",
        "start + MOST_COPIES)\n            for",
    ),
    ("retransmissions go to everybody", "again=True, to=to))", "again=True))"),
    ("what was purged is looked for", "range(max(start, self.kept_from), stop_here)", "range(start, stop_here)"),
    (
        "nobody hears that all have everything",
        "if self.lowest == self.received_below > self.announced_stable:",
        "if False:",
    ),
    ("questions are not answered", "elif unit.asks and not copies:", "elif False:"),
    ("the table goes backwards (Q7)", "        if below <= row:\n            return\n", ""),
    ("who is heard stays unanswered", "        self.unanswered[node] = 0\n", ""),
    ("an offer says nothing about what its sender has", "        self._note(source, unit.received_below, out)\n", ""),
    ("commit by one less", "[self.resilience - 1]", "[max(0, self.resilience - 2)]"),
    ("commit by one more", "[self.resilience - 1]", "[min(self.resilience, len(self.others) - 1)]"),
    (
        "the highest of the table is everywhere (S2)",
        "self.lowest = min(self.rows[member]",
        "self.lowest = max(self.rows[member]",
    ),
    (
        "what everybody has need not be delivered (W4)",
        "                self._deliver(out)\n                self._stabilise",
        "                self._stabilise",
    ),
    (
        "a table that begins anew takes back what was everywhere (W5)",
        "            if self.lowest > self.stable_below:\n",
        "            if self.lowest != self.stable_below:\n",
    ),
    ("the first phase does not end", "if self.sync_phase == 1 and self.lowest == self.received_below:", "if False:"),
    (
        "the first phase ends with who lacks something",
        "if self.sync_phase == 1 and self.lowest == self.received_below:",
        "if self.sync_phase == 1:",
    ),
    ("what waits is not numbered when there is room", "        if self.turns:\n            self._order(out)\n", ""),
    ("rounds are not counted (S7)", "            self.sync_round += 1\n", "            self.sync_round = 1\n"),
    (
        "old answers end a phase (S7)",
        "if self.sync_phase != 2 or unit.round != self.sync_round:",
        "if self.sync_phase != 2:",
    ),
    ("one answer ends the second phase", "if self.replied & self.members == self.members:", "if True:"),
    (
        "nothing is numbered after a synchronisation",
        "            self.sync_phase = 0\n            self._order(out)\n",
        "            self.sync_phase = 0\n",
    ),
    (
        "the sequencer watches nobody (S6)",
        "return bool(self._waits() or self.config.sequencer.heartbeat)",
        "return False",
    ),
    (
        "no heartbeat of the sequencer",
        "return bool(self._waits() or self.config.sequencer.heartbeat)",
        "return self._waits()",
    ),
    (
        "a phase is said once",
        "        if self.sync_phase:\n            self._say_phase(out)\n        elif",
        "        if self.sync_phase:\n            pass\n        elif",
    ),
    ("the group never synchronises", "            self._synchronise(1, out)\n", "            pass\n"),
    ("nobody is asked in quiet times (S6)", "            self._publish(out, wants=asked)\n", "            pass\n"),
    ("asked while everything moves", "if self.status_moved and not self._is_stuck():", "if False:"),
    ("nobody is suspected by the sequencer", "                suspects |= 1 << node\n", "                pass\n"),
    ("the sequencer does not back off", "min(most, 2 * self.status_patience)", "1"),
    (
        "the sequencer waits long while it is stuck",
        "MOST_PATIENT_WITH_SILENCE if self._is_stuck()",
        "MOST_PATIENT if True",
    ),
)
