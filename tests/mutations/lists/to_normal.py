"""Breakages of the rules while nothing is missing, and of the log that they rest on."""

from tests.mutations.mutation import changes

NORMAL = changes(
    "protocols.to_normal",
    ("goes to anybody", "if event.destinations != self._everybody:", "if False:"),
    ("window one wider", "len(self.sent) < self.allowance", "len(self.sent) <= self.allowance"),
    ("no window", "return len(self.sent) < self.allowance", "return True"),
    ("the window never opens again", "self.allowance = min(self.config.window, self.allowance + 1)", "pass"),
    ("the window opens too far", "min(self.config.window, self.allowance + 1)", "self.allowance + 1"),
    ("no quota", "return self.unsettled < self.config.quota", "return True"),
    ("quota one wider", "return self.unsettled < self.config.quota", "return self.unsettled <= self.config.quota"),
    ("places are never free again", "                self.unsettled -= 1\n", ""),
    ("places are free one too early", "self.own_places[0] < lowest", "self.own_places[0] <= lowest"),
    ("places are free when one has delivered", "lowest = min([", "lowest = max(["),
    (
        "copies are not called so",
        "self._transmit(self.again.popleft(), out, again=True)",
        "self._transmit(self.again.popleft(), out, again=False)",
    ),
    ("packets are numbered alike", "        self.next_packet += 1\n", ""),
    ("counts packets for messages", "self.next_message += len(event.lengths)", "self.next_message += 1"),
    (
        "own units are accepted when sent",
        "        heading = self._heading()\n        self.next_seq += 1\n",
        "        heading = self._heading()\n        self.next_seq += 1\n        self.expected[self.me] += 1\n",
    ),
    (
        "data take no number",
        "        heading = self._heading()\n        self.next_seq += 1\n",
        "        heading = self._heading()\n",
    ),
    ("debts are never paid", "        self.owes, self.unsaid = False, 0\n", "        self.unsaid = 0\n"),
    (
        "debts in sequence are never paid",
        "        self.next_seq += 1\n        self.owes_in_sequence = False\n",
        "        self.next_seq += 1\n",
    ),
    ("copies of old words count", "if type(unit) is Standing and self._has_said_more(heading):", "if False:"),
    (
        "what was delivered counts though it is old",
        "return heading.delivered < self.delivered_by[heading.source] or any(",
        "return any(",
    ),
    ("what was accepted counts though it is old", " or any(map(gt, known, heading.expects))", ""),
    (
        "the same words once more are old",
        "heading.delivered < self.delivered_by",
        "heading.delivered <= self.delivered_by",
    ),
    ("stamps stand still", "self.stamp += 1", "self.stamp = 1"),
    (
        "nobody says what it has delivered",
        "tuple(self.expected), self.delivered_count, wants)",
        "tuple(self.expected), 0, wants)",
    ),
    (
        "everything is said in sequence",
        "        if self.owes_in_sequence:\n            out",
        "        if True:\n            out",
    ),
    (
        "nothing is said in sequence",
        "        if self.owes_in_sequence:\n            out",
        "        if False:\n            out",
    ),
    ("polls that answer ask nothing", "            if not wants:\n                return\n", "            return\n"),
    ("duplicates stop the group", "        if seq < expected[source]:\n", "        if False:\n"),
    ("gaps are passed over", 'return "gap"', "pass"),
    ("hearsay is passed over (the test of ACK)", "if any(map(gt, heading.expects, expected)):", "if False:"),
    ("hearsay is accepted", 'return "hearsay"\n', 'expected[source] = seq + 1; return "hearsay"\n'),
    ("who is wanted does not answer", "if heading.wants & self._my_bit:", "if False:"),
    ("who is not wanted answers", "if heading.wants & self._my_bit:", "if heading.wants:"),
    ("nobody hears what others have delivered", "self.delivered_by[source] = heading.delivered", "pass"),
    ("nobody hears what others have accepted", "accepted.columns[source] = heading.expects", "pass"),
    (
        "only others are heard",
        "accepted.columns[source] = heading.expects",
        "accepted.columns[source] = heading.expects if source != self.me else tuple(expected)",
    ),
    ("what is accepted is expected again", "expected[source] = seq + 1", "expected[source] = seq"),
    (
        "the one that holds back wakes nobody",
        "if accepted.holds_back == source:",
        "if False:",
    ),
    (
        "acknowledges after the whole loop (F4)",
        "            for risen in accepted.rise():\n                self._preacknowledge(risen, out)\n",
        (
            "            held, ready = type(self)._acknowledge, []\n"
            "            self._acknowledge = lambda risen, out: ready.extend(risen)\n"
            "            for risen in accepted.rise():\n                self._preacknowledge(risen, out)\n"
            "            del self._acknowledge\n            held(self, ready, out)\n"
        ),
    ),
    ("data are not answered", "self.owes = self.owes_in_sequence = True\n", "pass\n"),
    ("data are answered outside the sequence", "self.owes = self.owes_in_sequence = True\n", "self.owes = True\n"),
    ("data do not count as unsaid", "self.unsaid += 1", "pass"),
    (
        "markers are not answered",
        "            self.unpreacknowledged += 1\n            self.owes = True\n",
        "            self.unpreacknowledged += 1\n",
    ),
    (
        "nobody waits for markers",
        "            self.unpreacknowledged += 1\n            self.owes = True\n",
        "            self.owes = True\n",
    ),
    ("what was thrown away is told twice", "if packet.seq >= self.accepted_packets[packet.source]:", "if True:"),
    ("what is preacknowledged is not told", "self.owes = True  # the others", "pass  # the others"),
    ("what is sent is never preacknowledged", "                self.sent.popleft()\n", "                pass\n"),
    ("nobody hears acknowledgments", "log.columns[source] = heading.expects", "pass"),
    ("acknowledged when accepted", "log.columns[source] = heading.expects", "log.columns[:] = self.accepted.columns"),
    ("the acknowledgments wake nobody", "log.holds_back == source", "len(log.entries) == 1"),
    ("markers end nothing", "            self._close_run(unit.through, out)", "            pass"),
    (
        "preacknowledgment does not move",
        "        self.moved = True\n        out.append(Reached(PREACKNOWLEDGED, packet))",
        "        out.append(Reached(PREACKNOWLEDGED, packet))",
    ),
    (
        "acknowledgment does not move",
        "            self.moved = True\n            self.acknowledged_count",
        "            self.acknowledged_count",
    ),
    ("all nodes wait equally long", "spread(duration, self.me, self.stamp)", "duration"),
    ("timers never fire", "out.append(SetTimer(name, spread(duration, self.me, self.stamp)))", "pass"),
    ("the impossible is taken", "if self._is_impossible(unit, heading):", "if False:"),
    ("runs of what nobody sent are ended", "if type(unit) is RunMarker and unit.through > self.pre", "if 0 > self.pre"),
    ("the last that was heard cannot be ended", "unit.through > self.pre", "unit.through >= self.pre"),
    ("a marker ends no more than is preacknowledged", "_count + self.unpreacknowledged:", "_count:"),
    ("what I never sent is mine", "return heading.source == self.me and", "return False and"),
    ("what I sent last is not mine", "heading.seq >= self.next_seq and", "heading.seq >= self.next_seq - 1 and"),
    ("what nobody sent is not its sender's", "return heading.source == self.me and", "return"),
    ("my standings are not mine", " and type(unit) is not Standing\n", "\n"),
    ("any data of mine are those sent first", " and self.sent and self.sent[0][0] == heading.seq:", ":"),
)

LOG = changes(
    "protocols.to_log",
    ("passed one too early", "if columns[node][source] <= seq:", "if columns[node][source] < seq:"),
    ("passed one too late", "if columns[node][source] <= seq:", "if columns[node][source] <= seq + 1:"),
    ("the last node is not asked", "range(self.holds_back, len(columns))", "range(self.holds_back, len(columns) - 1)"),
    (
        "the next is looked at from where the last was held back",
        "                self.holds_back = 0\n                passed_below",
        "                passed_below",
    ),
    (
        "passed by one is passed by all",
        "min([column[source] for column in columns])",
        "max([column[source] for column in columns])",
    ),
    (
        "passed for one source is passed for all",
        "if seq >= passed_below[source]:",
        "if seq >= max(passed_below):",
    ),
    ("waits for the wrong nodes", "if column[source] <= seq)", "if column[source] > seq)"),
    (
        "remembers what was passed in another epoch",
        "self.holds_back, self._passed_below = 0, [0] * len(self.columns)",
        "pass",
    ),
)

MUTATIONS = [*NORMAL, *LOG]
