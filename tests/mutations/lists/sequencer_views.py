"""Deliberate breakages of what the sequencer's broadcast does when a node fails, and of its dispatch."""

from tests.mutations.mutation import changes

VIEWS = changes(
    "protocols.sequencer_views",
    (
        "a suspicion is begun anew each time",
        "        if nodes & ~self.suspects == 0:\n            return\n",
        "        if not nodes:\n            return\n",
    ),
    (
        "everybody begins at once",
        "        if rank:\n            self.set_timer",
        "        if False:\n            self.set_timer",
    ),
    (
        "nobody begins at once",
        "        else:\n            self._begin_ballot(out)\n\n    def _",
        '        else:\n            self.set_timer("view", 1, out)\n\n    def _',
    ),
    (
        "anybody alone is a quorum (S8)",
        "return max(size // 2 + 1, size - self.resilience if self.resilience else 0)",
        "return 1",
    ),
    (
        "a majority is enough (W3)",
        "return max(size // 2 + 1, size - self.resilience if self.resilience else 0)",
        "return size // 2 + 1",
    ),
    ("half is a majority", "max(size // 2 + 1,", "max((size + 1) // 2,"),
    (
        "a suspicion that was refuted counts",
        "            if self.suspects:\n                self._begin_ballot(out)\n            return",
        "            self._begin_ballot(out)\n            return",
    ),
    ("a blocked group never gives up", "if self.unresolved > self.config.polls_to_abort:", "if False:"),
    ("nobody takes over", "        elif not self.coordinates and not self.guided:\n", "        elif False:\n"),
    (
        "others take over at once",
        "        elif not self.coordinates and not self.guided:\n",
        "        elif not self.coordinates:\n",
    ),
    (
        "the view timer is not set again",
        "                self._go_on(out)\n            self._set_view_timer(out)\n",
        "                self._go_on(out)\n",
    ),
    (
        "the coordinator says it once",
        "                self._go_on(out)\n            self._set",
        "                pass\n            self._set",
    ),
    (
        "ballots are not above those heard of",
        "max(self.highest_round, self.promised[0] if self.promised else 0) + 1",
        "(self.promised[0] if self.promised else 0) + 1",
    ),
    ("the same ballot again", "else 0) + 1, self.me)", "else 0), self.me)"),
    (
        "a coordinator forgets what it accepted",
        "ballot, self.received_below, self.accepted)}",
        "ballot, self.received_below, None)}",
    ),
    (
        "the coordinator waits for everybody",
        "return len(self.reports) >= self._quorum() and self.rounds >= patience",
        "return False",
    ),
    (
        "the coordinator waits for nobody else",
        "return len(self.reports) >= self._quorum() and self.rounds >= patience",
        "return len(self.reports) >= self._quorum()",
    ),
    (
        "the suspected are waited for as long as the others",
        "if silent & ~self.suspects else GATHER",
        "if silent else GATHER",
    ),
    (
        "late answers change what was proposed",
        "unit.ballot != self.promised or self.proposal is not None:",
        "unit.ballot != self.promised:",
    ),
    (
        "answers to other ballots count",
        "if not self.coordinates or unit.ballot != self.promised or self.proposal is not None:",
        "if not self.coordinates or self.proposal is not None:",
    ),
    ("what was accepted is passed over (S8)", "        if accepted:\n", "        if False:\n"),
    (
        "the earliest that was accepted",
        "max(accepted, key=lambda found: (found[0][0], -found[1]))",
        "min(accepted, key=lambda found: (found[0][0], -found[1]))",
    ),
    (
        "whom to fetch from depends on who answered first",
        "key=lambda found: (found[0][0], -found[1]))",
        "key=lambda found: found[0][0])",
    ),
    (
        "the shortest log (S8)",
        "longest = max(reports, key=lambda report: (report.received_below, -report.source))",
        "longest = min(reports, key=lambda report: (report.received_below, -report.source))",
    ),
    (
        "a suspected sequencer stays",
        "keeps = remain >> old & 1 and not self.suspects >> old & 1",
        "keeps = remain >> old & 1",
    ),
    (
        "a sequencer that is gone stays",
        "keeps = remain >> old & 1 and not self.suspects >> old & 1",
        "keeps = not self.suspects >> old & 1",
    ),
    ("the sequencer never stays", "sequencer = old if keeps else self.me", "sequencer = self.me"),
    (
        "the lowest becomes the sequencer",
        "sequencer = old if keeps else self.me",
        "sequencer = old if keeps else (remain & -remain).bit_length() - 1",
    ),
    (
        "those who did not answer stay",
        "value = NextView(self.view + 1, remain, sequencer,",
        "value = NextView(self.view + 1, self.members, sequencer,",
    ),
    (
        "the cut one less",
        "sequencer, longest.received_below, why)",
        "sequencer, max(0, longest.received_below - 1), why)",
    ),
    ("accepted by anybody (S8)", "self.accepts.bit_count() > self.members.bit_count() // 2 and ", ""),
    ("decided by those who are shut out (W1)", " and 2 * of_new >= value.members.bit_count():", ":"),
    (
        "less than half of the new ones",
        "2 * of_new >= value.members.bit_count()",
        "3 * of_new >= value.members.bit_count()",
    ),
    ("nobody is told the view", "            out.append(Send(Install(value.number, self.me, value)))\n", ""),
    (
        "who is refused goes on",
        "            self.coordinates, self.proposal = False, None\n            self._set",
        "            self._set",
    ),
    (
        "acceptances of other ballots count",
        "if not self.coordinates or unit.ballot != self.promised or self.proposal is None:",
        "if not self.coordinates or self.proposal is None:",
    ),
    (
        "a node that promised goes on delivering (S8)",
        "        self.promised = ballot\n        self.coordinates, self.proposal",
        "        self.coordinates, self.proposal",
    ),
    ("timers of the old view go on", "            self.stop_timers(out)\n", ""),
    ("lower ballots are taken", "if self.promised is None or ballot >= self.promised:", "if True:"),
    (
        "lower ballots are not answered",
        "        out.append(Send(Refused(self.view, self.me, ballot, self.promised), to=unit.source))\n",
        "",
    ),
    (
        "who answered answers again",
        "        if not unit.heard & self._my_bit:\n            reply",
        "        if True:\n            reply",
    ),
    (
        "a member forgets what it accepted",
        "reply = Flushed(self.view, self.me, unit.ballot, self.received_below, self.accepted)",
        "reply = Flushed(self.view, self.me, unit.ballot, self.received_below, None)",
    ),
    (
        "accepted without having it (W1)",
        "        if lacking:\n            self.fetched_below",
        "        if False:\n            self.fetched_below",
    ),
    (
        "proposed without having it",
        "        if lacking:\n            self.fetched_below",
        "        if lacking and not self.coordinates:\n            self.fetched_below",
    ),
    ("acceptance is not remembered", "        self.accepted = self.proposal\n", ""),
    ("nothing is supplied", "                if packet is not None:\n", "                if False:\n"),
    (
        "only own receipts are supplied",
        "self.history.get(number) or self.ahead.get(number) or self.supplied.get(number)",
        "self.history.get(number)",
    ),
    ("supplies without an end", "range(start, min(stop, start + MOST_COPIES - copies))", "range(start, stop)"),
    (
        "each supply asks for more",
        "        is_last = unit.number + 1 == self.fetched_below\n",
        "        is_last = True\n",
    ),
    (
        "the next batch waits for the timer",
        "        is_last = unit.number + 1 == self.fetched_below\n",
        "        is_last = False\n",
    ),
    (
        "views are skipped",
        "if value.number == self.view + 1 and value.members & self._my_bit:",
        "if value.members & self._my_bit:",
    ),
    (
        "who is shut out goes on",
        "            self.closed = True\n            out.append(View(",
        "            out.append(View(",
    ),
    ("what was fetched for another view is kept (W2)", "found.items() if number < value.cut_below}", "found.items()}"),
    ("what is ahead is forgotten", "found = {**self.supplied, **self.ahead}", "found = {**self.supplied}"),
    ("what was fetched is forgotten", "found = {**self.supplied, **self.ahead}", "found = {**self.ahead}"),
    (
        "the old view's numbers stay known",
        "self.known_below, self.asked_below, self.overdue_below = value.cut_below, 0, 0",
        "self.asked_below, self.overdue_below = 0, 0",
    ),
    ("orders of the old view count", "        self.awaited.clear()\n", ""),
    (
        "data of those who left are kept",
        "self.unordered.items() if value.members >> name[0] & 1}",
        "self.unordered.items()}",
    ),
    (
        "a new view takes back what was had",
        "        if self.received_below > value.cut_below:\n",
        "        if False:\n",
    ),
    ("the table outlives the view", "        self.start_ordering()\n", ""),
    ("promises outlive the view", "        self.start_agreement()\n", ""),
    ("what was left is not committed", "        self.commit_below = max(self.commit_below, value.cut_below)\n", ""),
    ("the application is not told", "        self.markers.append(value)\n", ""),
    ("own packets are not offered anew", "        self._offer_again(mine, out)\n", ""),
    (
        "a sequencer that lacks something numbers",
        "if self.received_below < self.known_below:\n                self.abort",
        "if False:\n                self.abort",
    ),
    ("its own row begins at nothing", "            self.rows[self.me] = self.received_below\n", ""),
    (
        "duplicates of the old view are not known",
        "self.number_of = {(packet.source, packet.seq): number for number, packet in self.history.items()}",
        "self.number_of = {}",
    ),
    (
        "the sequencer's own are not offered anew",
        "            for packet in mine:\n                self._offer(packet, out)\n",
        "",
    ),
    (
        "the new sequencer is not told what members have",
        "        if missing or not mine:\n            self._say(missing, out)\n",
        "",
    ),
    (
        "all of an old view are answered",
        "if self.answered & bit or (view < self.view and type(unit) not in OLD_VIEW):",
        "if self.answered & bit:",
    ),
    ("whoever is behind is answered all the time", "if self.answered & bit or (view", "if (view"),
    ("whoever is behind is not told", "        out.append(Send(answer, to=unit.source))\n", ""),
)

DISPATCH = changes(
    "protocols.sequencer",
    (
        "commits wait for the next broadcast",
        "if self.resilience and self.commit_below > self.announced_commit:",
        "if False:",
    ),
    ("views are not looked at", "        elif view != self.view:\n", "        elif view > self.view:\n"),
    ("those who left are heard", "        elif not self.members >> unit.source & 1:\n", "        elif False:\n"),
    ("what was promised is forgotten", "        elif self.promised is not None:\n", "        elif False:\n"),
    ("anybody speaks for the sequencer", "        elif unit.source == self.sequencer:\n", "        elif True:\n"),
    (
        "a broadcast by anybody",
        "view == self.view and unit.source == self.sequencer and self.promised",
        "view == self.view and self.promised",
    ),
    (
        "a frozen node takes broadcasts (S8)",
        "and unit.source == self.sequencer and self.promised is None:",
        "and unit.source == self.sequencer:",
    ),
    ("who is heard stays suspected", "            self.suspects &= ~(1 << unit.source)\n", ""),
    (
        "the sequencer that is heard stays suspected",
        "            self.heard, self.suspects = True, 0\n            self._receive_from",
        "            self.heard = True\n            self._receive_from",
    ),
    (
        "broadcasts are no sign of life",
        "            self.heard, self.suspects = True, 0\n            self._receive_broadcast",
        "            self._receive_broadcast",
    ),
    (
        "bulletins are no sign of life",
        "            self.heard, self.suspects = True, 0\n            self._receive_from",
        "            self._receive_from",
    ),
    (
        "data of an old view are thrown away",
        "elif self._may_be_numbered_yet(unit):",
        "elif False:",
    ),
    ("data of those shut out are kept", "return bool(self.members >> unit.source & 1)", "return True"),
    (
        "the group is given up, and goes on",
        "            return out[: ends[0]] if ends else out\n",
        "            return out\n",
    ),
    ("claims that cannot be are believed", 'if getattr(unit, "received_below", 0) > self.received_below:', "if False:"),
    ("who has everything is not believed", '"received_below", 0) > self', '"received_below", 0) >= self'),
    ("older views are installed", "            if view > self.view:\n", "            if view >= 0:\n"),
    ("the need timer does nothing", '        if name == "need":\n', '        if name == "never":\n'),
    ("the gap timer does nothing", '        elif name == "gap":\n', '        elif name == "never":\n'),
    ("the status timer does nothing", '        elif name == "status":\n', '        elif name == "never":\n'),
    ("the view timer does nothing", '        elif name == "view":\n', '        elif name == "never":\n'),
    ("the answer timer does nothing", '        elif name == "answer":\n', '        elif name == "never":\n'),
    (
        "a silent sequencer is not suspected",
        "                self._suspect(1 << self.sequencer, out)\n",
        "                pass\n",
    ),
    ("silent members are not suspected", "self._suspect(self._status_due(out), out)", "self._status_due(out)"),
)

MUTATIONS = [*VIEWS, *DISPATCH]
