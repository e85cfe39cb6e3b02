"""Deliberate breakages of the sequencer as printed: rules read otherwise than they stand."""

from tests.mutations.mutation import changes

SEQUENCER = changes(
    "protocols.sequencer_paper",
    ("several at a time", "if self.waiting and self.outstanding is None and", "if self.waiting and"),
    ("sends in a synchronisation", " and self.sync_through < 0 and not self.aborted:", " and not self.aborted:"),
    ("ids stand still", "        self.message_id += 1\n", ""),
    ("no timer for data", '        out.append(SetTimer("data", self.config.timing.poll))\n\n', "\n"),
    (
        "numbers in a synchronisation",
        "        if self.phase:\n            out.append(Discard(unit",
        "        if False:\n            out.append(Discard(unit",
    ),
    ("nothing is a duplicate", "        elif self._is_duplicate(unit):\n", "        elif False:\n"),
    (
        "older ones are always duplicates",
        "return unit.message <= last if self._readings.older_are_duplicates else unit.message == last",
        "return unit.message <= last",
    ),
    (
        "answers are whole",
        "answer = stored if self._readings.whole_answers else stored.without_data()",
        "answer = stored",
    ),
    ("a null pointer is not followed", "        if not self._readings.whole_answers:\n", "        if False:\n"),
    ("no acknowledgment rides on data", "            self._believe(sender, unit.last)\n", ""),
    ("a full history is no matter", "            if self._full_history():\n", "            if False:\n"),
    ("the last id is not noted", "                self.last_message[sender] = unit.message\n", ""),
    ("nothing is stored", "        self.history.append(broadcast)  # StoreInHistory\n", ""),
    ("numbers stand still", "        self.next_number += 1\n", ""),
    ("its own row moves", "        if self._readings.advances_own_row:\n", "        if True:\n"),
    (
        "the table never falls",
        "highest = max(number, self.acknowledged[source]) if self._readings.older_are_duplicates else number",
        "highest = max(number, self.acknowledged[source])",
    ),
    ("purged of one less", "if stored.number > received_through]", "if stored.number >= received_through]"),
    ("purged by the highest", "received_through = min(self.acknowledged)", "received_through = max(self.acknowledged)"),
    (
        "one more fits",
        "        return len(self.history) >= self._history_size",
        "        return len(self.history) > self._history_size",
    ),
    (
        "requests say the last",
        "first = unit.number + 1 if self._readings.acknowledges_last else unit.number",
        "first = unit.number + 1",
    ),
    (
        "answers go on from the first only",
        "for stored in self.history if stored.number >= first]",
        "for stored in self.history if stored.number == first]",
    ),
    ("any number is next", "        if unit.number == self.expected:\n", "        if unit.number >= self.expected:\n"),
    ("what is ahead is always kept", "elif not self._readings.asks_once:", "elif False:"),
    ("asks each time", "            if self.asked != self.expected:\n", "            if True:\n"),
    ("tries are counted for ever", "        self.request_tries = 0\n        if", "        if"),
    (
        "the request timer runs on",
        '            out.append(CancelTimer("request"))\n        self._pass',
        "            pass\n        self._pass",
    ),
    ("one's own does not come back", "(packet.source, packet.seq) == (self.me, mine.message):", "False:"),
    (
        "gives up one later",
        "if self.request_tries > self.config.polls_to_abort:",
        "if self.request_tries > self.config.polls_to_abort + 1:",
    ),
    ("dummies come one late", "elif self.unspoken >= self._dummy_after:", "elif self.unspoken > self._dummy_after:"),
    ("data are sent once", "                self._send_data(out, again=True)\n", "                pass\n"),
    ("tries count in a synchronisation", "self.data_tries += self.sync_through < 0", "self.data_tries += 1"),
    (
        "phase 2 stops too",
        "        if unit.phase == 2:\n            self.sync_through = -1\n",
        "        if unit.phase == 2:\n",
    ),
    (
        "phase 1 is answered at once",
        "        if self.expected <= unit.number:\n            self._request(out)",
        "        if False:\n            self._request(out)",
    ),
    ("one reply is all", "        if self.replied | 1 << self.me != self._everybody:\n            return\n", ""),
    (
        "one phase is enough",
        "            self._begin_phase(2, out)\n",
        "            self.phase, self.sync_through = 0, -1\n",
    ),
    ("the history survives phase 1", "            self.history = []\n", ""),
)

ELECTION = changes(
    "protocols.sequencer_paper_election",
    (
        "the last of the highest wins",
        "node.claims.index(max(node.claims)) != node.me:",
        "node.claims[node.me] != max(node.claims):",
    ),
    ("the lowest wins", "node.claims.index(max(node.claims))", "node.claims.index(min(node.claims))"),
    ("claims are not heard", "    node.claims[unit.source] = unit.number\n", ""),
    ("an election has no end", '        out.append(SetTimer("election", node.config.timing.poll))\n', ""),
    (
        "numbers begin anew",
        "node.sequencer, node.next_number = node.me, node.expected",
        "node.sequencer, node.next_number = node.me, 0",
    ),
    ("ids are forgotten", "max(node.last_message[source], stored.message)", "node.last_message[source]"),
    ("nobody is told", "    out.append(Send(PaperElected(node.me, node.next_number - 1)))\n", ""),
    ("who gives way asks for nothing", "    if node.expected < node.heard_below:\n", "    if False:\n"),
    (
        "who gives way still elects",
        'out += [CancelTimer("election"), CancelTimer("request")]',
        'out += [CancelTimer("request")]',
    ),
)

MUTATIONS = [*SEQUENCER, *ELECTION]
