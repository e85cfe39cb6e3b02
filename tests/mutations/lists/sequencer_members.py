"""Deliberate breakages of what members of the sequencer's broadcast do."""

from tests.mutations.mutation import changes

STATE = changes(
    "protocols.sequencer_state",
    ("dummy messages are never due", "history * 3 // 4)", "history * 3)"),
    ("everybody says at once what it holds", "followers[: self.resilience]", "followers"),
    ("nobody says at once what it holds", "followers[: self.resilience]", "followers[:0]"),
    (
        "resilience does not shrink with the view",
        "min(self.config.sequencer.resilience, size - 1)",
        "self.config.sequencer.resilience",
    ),
    ("history one more", "self.stable_below >= self.config", "self.stable_below > self.config"),
    ("a history without an end", "self.received_below - self.stable_below >= self.config.sequencer.history", "False"),
    (
        "at rest with packets under way",
        "            self.outstanding\n            or self.waiting",
        "            self.waiting",
    ),
    ("at rest with submissions", "            or self.waiting\n", ""),
    ("at rest while others may lack something", "            or self.stable_below < self.received_below\n", ""),
    ("at rest while something is missing", "            or self.received_below < self.known_below\n", ""),
    ("no heartbeat", "return bool(self.config.sequencer.heartbeat) or", "return"),
    ("a request asks for everything", "(start, min(stop, start + most))", "(start, stop)"),
    ("laggards are those who have something", "self.rows[node] < self.received_below", "self.rows[node] > 0"),
    ("a snapshot forgets what was supplied", '"supplied", "reports")', '"reports")'),
)

RECEIVING = changes(
    "protocols.sequencer_receiving",
    (
        "duplicates are stored",
        "if number < self.received_below or number in self.ahead:\n            return False",
        "if number in self.ahead:\n            return False",
    ),
    (
        "what is ahead is stored at once",
        "if number > self.received_below:\n            self.ahead[number] = packet",
        "if False:\n            self.ahead[number] = packet",
    ),
    ("what is ahead is thrown away (S5)", "            self.ahead[number] = packet\n", ""),
    ("what was ahead stays there", "while self.received_below in self.ahead and", "while False and"),
    ("a gap sets no timer", "        if lacks and not self.gap_timer:\n", "        if False:\n"),
    ("a gap shows only at the second unit", "lacks=self.known_below < number)", "lacks=self.known_below + 1 < number)"),
    ("a gap is asked for again at each unit (S5)", "        self.asked_below = self.gap_below\n", ""),
    ("gaps found later are not asked for", "if self.missing(self.gap_below):", "if False:"),
    (
        "what is fresh is asked for too",
        "missing = self.missing(self.asked_below, self.gap_below)",
        "missing = self.missing(self.asked_below)",
    ),
    ("numbers that contradict the ids are taken", "if seq != self.ordered_below[source]:", "if False:"),
    ("packets never sent are taken", "if source == self.me and seq >= self.next_seq:", "if False:"),
    ("accepting is not told", "        out.append(Reached(ACCEPTED, packet))\n", ""),
    ("unordered data are kept for ever", "            self.unordered.pop((source, seq), None)\n", "            pass\n"),
    ("awaited data are kept for ever", "            self.awaited.pop((source, seq), None)\n", "            pass\n"),
    ("an order without data is passed over", "                self.awaited[name] = number\n", ""),
    ("an order shows no gap", "lacks=self.known_below <= number)", "lacks=False)"),
    ("own data are asked for", "if packet is None and name[0] == self.me:", "if False:"),
    ("data after their order are passed over", "if name in self.awaited:", "if False:"),
    ("unordered data without an end", "or not ordered <= packet.seq < ordered + self._most_ahead", ""),
    (
        "a bulletin shows no gap (S6)",
        (
            "        self._know_of(unit.next_number, out, lacks=self.known_below < unit.next_number)\n"
            "        self._learn(unit.source, unit.commit_below"
        ),
        "        self._learn(unit.source, unit.commit_below",
    ),
    ("claims that cannot be are believed", "if stable_below > self.received_below:", "if False:"),
    (
        "what everybody has need not be delivered (W4)",
        "        if stable_below > self.commit_below:\n            self.commit_below = stable_below\n",
        "",
    ),
    (
        "delivered and forgotten",
        "        self.delivered_below = number\n",
        "        self.delivered_below = number\n        self._forget(number)\n",
    ),
    (
        "everybody has it before the view is told",
        "        if not self.markers:\n            self._stabilise",
        "        if True:\n            self._stabilise",
    ),
    (
        "everywhere is not told",
        "out += [Reached(PREACKNOWLEDGED, history[number])",
        "_ = [Reached(PREACKNOWLEDGED, history[number])",
    ),
    ("history is never purged", "while self.kept_from < below:", "while False:"),
    ("numbers of the purged are kept", "            if self.number_of:\n", "            if False:\n"),
    ("resilience is not waited for", "if self.resilience and self.commit_below < until:", "if False:"),
    ("commits are not learned", "        if commit_below > self.commit_below:\n", "        if False:\n"),
    (
        "own packets stay under way",
        "                if packet.source == self.me:\n                    self.outstanding.popleft()\n",
        "",
    ),
    ("views are told at once", "if self.markers and self.markers[0].cut_below == number:", "if self.markers:"),
    ("views are told one later", "self.markers[0].cut_below == number", "self.markers[0].cut_below == number - 1"),
    ("nobody answers a bulletin", "if unit.wants & self._my_bit and not self.closed:", "if False:"),
    ("everybody answers a bulletin", "if unit.wants & self._my_bit and not self.closed:", "if not self.closed:"),
    (
        "an answer that cannot be given yet is forgotten",
        "self.wanted_below = max(self.wanted_below, wanted_below)",
        "pass",
    ),
    (
        "what was missed long ago is not asked for again",
        "missing = self.missing(stop=self.asked_below)",
        "missing = ()",
    ),
    ("old rounds count (S7)", "        if unit.round < self.sync_round:\n", "        if False:\n"),
    ("an old first phase stops a node again (S7)", "if unit.round > self.sync_round:", "if True:"),
    (
        "the first phase stops nobody",
        "self.sync_round, self.in_sync_until = unit.round, unit.next_number",
        "self.sync_round = unit.round",
    ),
    (
        "the second phase releases nobody",
        "self.sync_round, self.in_sync_until = unit.round, -1",
        "self.sync_round = unit.round",
    ),
    (
        "the second phase is not answered",
        "        if unit.wants & self._my_bit:\n            out.append(",
        "        if False:\n            out.append(",
    ),
    (
        "the first phase is not answered",
        "            if unit.wants & self._my_bit:\n                self._answer",
        "            if False:\n                self._answer",
    ),
)

SENDING = changes(
    "protocols.sequencer_sending",
    ("anything may be submitted", "if event.destinations != self._everybody:", "if False:"),
    ("sending while the group synchronises", "if self.received_below <= self.in_sync_until:", "if False:"),
    (
        "a later broadcast does not end a synchronisation",
        "if self.received_below <= self.in_sync_until:",
        "if self.in_sync_until >= 0:",
    ),
    ("window one more", "len(self.outstanding) < self.config.window", "len(self.outstanding) <= self.config.window"),
    ("messages counted as packets", "self.next_message += len(event.lengths)", "self.next_message += 1"),
    ("large packets are offered like others", "0 < self.config.sequencer.direct_from <= packet.body_size()", "False"),
    (
        "all packets are large",
        "0 < self.config.sequencer.direct_from <= packet.body_size()",
        "self.config.sequencer.direct_from > 0",
    ),
    (
        "what rides on an offer is said again",
        "        self.said_below = self.received_below\n        offer =",
        "        offer =",
    ),
    ("only the first questions count as silence", "        elif self.asked:\n            self.silent += 1\n", ""),
    (
        "a sequencer that is heard is silent too (W8)",
        "        if heard:\n            self.silent = 0\n",
        "        if False:\n            self.silent = 0\n",
    ),
    ("questions do not back off", "min(most, 2 * self.patience)", "1"),
    ("questions back off alike in silence", "if heard else MOST_PATIENT_WITH_SILENCE", "if True else 1"),
    ("nothing is offered again", "            self._offer_again(overdue, out)\n", "            pass\n"),
    ("everything is offered again", "not in seen][:MOST_AGAIN]", "not in seen]"),
    ("what has a number is offered again", "if packet.seq not in seen]", "]"),
    ("what was just offered is offered again", "if first <= packet.seq < self.due_below]", "if first <= packet.seq]"),
    (
        "what is missing is asked for once (S5)",
        "        if missing:\n            self._say(missing, out)\n        elif not overdue",
        "        if missing:\n            pass\n        elif not overdue",
    ),
    ("what has just come is said at once", "elif not overdue and quiet and not", "elif not overdue and not"),
    (
        "nobody says what it has in quiet times (S6)",
        "elif not overdue and quiet and not (heard and self.is_at_rest()):",
        "elif False:",
    ),
    ("nobody asks how things stand (S6)", "asks=self.said_below == self.received_below)", "asks=False)"),
    ("asked at once how things stand", "asks=self.said_below == self.received_below)", "asks=True)"),
    ("nobody is suspected", "return self.silent > self.config.sequencer.suspect_after", "return False"),
    ("suspected one question later", "return self.silent > self.config", "return self.silent > 1 + self.config"),
    ("no dummy messages", "or unsaid >= self._dummy):", "):"),
    ("what was wanted is not said", "if unsaid and (wanted or", "if unsaid and (False or"),
    ("what is held is not said at once", "(wanted or self.says_at_once or", "(wanted or"),
    ("the need timer is never set", "if not self.need_timer and self.in_need():", "if False:"),
)

MUTATIONS = [*STATE, *RECEIVING, *SENDING]
