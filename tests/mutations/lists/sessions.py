"""Deliberate breakages of how groups are found, open, live, and end."""

from tests.mutations.mutation import changes

OPENING = changes(
    "live.opening",
    ("an old join counts", "if alike and join.round > known.round:", "if alike:"),
    ("a life changes its terms", "if alike and join.round > known.round:", "if join.round > known.round:"),
    ("any first life is taken", "            return self._names_us(join)\n", "            return True\n"),
    ("any new life is taken", "return self._shows_life(join.heard[self.me], self.taken_at[member])", "return True"),
    ("no new life is taken", "return self._shows_life(join.heard[self.me], self.taken_at[member])", "return False"),
    ("a life is taken at no time", "self.taken_at[member], self.unproven[member] = self.round, None", "pass"),
    ("lives without end", "if self.lives[member] > MOST_LIVES:", "if False:"),
    (
        "who has not shown that it lives gets no answer",
        "            out.append(Say(self.join(member), member))  # it can",
        "            pass  # it can",
    ),
    ("the answer does not name it", "Say(self.join(member), member))  # it can", "Say(self.join(), member))  # it can"),
    ("only answers name it", "(taken is None or member == answered):", "member == answered:"),
    ("what is named counts as taken", "LastJoin(unproven.incarnation)", "LastJoin(unproven.incarnation, 1)"),
    ("who was only named is not answered", " or not mine.round or mine.session", " or mine.session"),
    ("who was only named was taken", "if known is not None and heard.round and", "if known is not None and"),
    ("terms do not matter", "alike, known = join.terms == self.terms, self", "alike, known = True, self"),
    ("old terms count", "if not alike and known is None and self._names_us(join):", "if not alike and known is None:"),
    (
        "terms of a former life count",
        "if not alike and known is None and self._names_us(join):",
        "if not alike and self._names_us(join):",
    ),
    ("vectors of any length", " or (alike and len(join.heard) != len(self.names)):", ":"),
    (
        "nobody is answered",
        "if not self._agree(out) and self._wants(join.heard[self.me]):",
        "if self._agree(out) and False:",
    ),
    ("who is open answers nobody", "        elif self._wants(mine):\n", "        elif False:\n"),
    ("a late life is taken for the one inside", "if not self.has(member, join.incarnation):", "if False:"),
    (
        "who went another way is not told",
        "(other := self._other_life(join)) is not None:",
        "(other := None) is not None:",
    ),
    ("another life proves nothing needed", "if self._shows_life(mine, self.opened_at) and", "if"),
    ("the session forgets numbers", "{join.incarnation} {join.first_seq}", "{join.incarnation}"),
    ("the session forgets lives", "{join.incarnation} {join.first_seq}", "{join.first_seq}"),
    ("one agrees for all", "all(join.session == self.session for", "any(join.session == self.session for"),
    ("opens with nobody's consent", "self.session != 0 and all(", "self.session != 0 or all("),
    ("what was learned by hearsay is asked for", "join and replace(join, session=self.session)", "join"),
    ("a refusal to nobody", "for join in joins if join is not None)", "for join in joins if False)"),
    ("who does not hear us is silent", "            elif unproven is None:\n", "            elif True:\n"),
)

LIVENESS = changes(
    "live.liveness",
    ("a sleeper suspects all", "            if slept:\n", "            if False:\n"),
    ("everybody sleeps always", "            if slept:\n", "            if True:\n"),
    ("who slept for a moment waits long", "- min(elapsed, self.config.silence // 2)", "- self.config.silence // 2"),
    ("who slept long waits long", "min(elapsed, self.config.silence // 2)", "elapsed"),
    ("a sign is no sign", "                self.silent[member] = 0\n", "                pass\n"),
    ("nobody is suspected", "if self.silent[member] >= self.config.silence:", "if False:"),
    ("nobody is asked", "if 2 * self.silent[member] > 3 * self.config.beat:", "if False:"),
    ("suspected again and again", "newly = suspected & ~self.suspected", "newly = suspected"),
    ("signs last for ever", "        self.heard = 0\n        return", "        return"),
    ("time stands still", "        self.ticked_at = now\n", ""),
)

CLOSING = changes(
    "live.closing",
    ("closes without being asked", "and self.wanted and self.resting:", "and self.resting:"),
    ("closes with messages under way", "and self.wanted and self.resting:", "and self.wanted:"),
    ("done while others send", "and self.resting and not self.below(Stage.CLOSING):", "and self.resting:"),
    ("done without rest", "and self.resting and not self.below(Stage.CLOSING):", "and not self.below(Stage.CLOSING):"),
    ("leaves alone", "(not self.below(Stage.DONE) or self._somebody_leaves())", "True"),
    ("a farewell says nothing", " or self._somebody_leaves())", ")"),
    ("stages go back", "max(self.stages[member], stage)", "stage"),
    ("who is done is watched", "self.below(Stage.DONE) if self.stage is Stage.DONE else 0", "self.others"),
    ("nobody is watched", "return self.others if self.stage < Stage.DONE", "return 0 if self.stage < Stage.DONE"),
)

SESSION = changes(
    "live.session",
    (
        "what comes in the session opens nothing",
        "            self._open(out)\n        if self.phase is Phase.OPEN:",
        "            pass\n        if self.phase is Phase.OPEN:",
    ),
    (
        "an aborted one answers nobody",
        "        elif self.phase is Phase.ABORTED:\n            self._answer_late",
        "        elif False:\n            self._answer_late",
    ),
    ("answers without measure", "if not self.answered >> member & 1:", "if True:"),
    ("a refusal of another life counts", "if refuse.refused != self.opening.mine.incarnation:", "if False:"),
    ("any life's refusal pulls the group down", "and self.opening.has(member, refuse.incarnation):", "and True:"),
    ("questions are not answered", "            if beat.asks:\n", "            if False:\n"),
    ("an abort is said once", "if self.times_said < TIMES_SAID:", "if self.times_said < 1:"),
    (
        "an abort is not heard",
        "if self.phase is Phase.OPEN and self.closing.others >> member & 1:  # else",
        "if False:  # else",
    ),
    ("one that was left behind ends the group", " and self.closing.others >> member & 1:  # else", ":  # else"),
    ("no beat", "        if not self.half_a_beat:\n", "        if False:\n"),
    ("no end of lingering", '            ("linger", self.phase): self._leave,\n', ""),
    ("no end of opening", '        out.append(SetTimer("opening", self.config.opening))\n', ""),
    ("old news of rest count", "            self.closing.resting = False  # until", "            # until"),
    ("nobody who is behind is asked", "        if behind:\n", "        if False:\n"),
    ("the last word is said once", "if self.times_said > TIMES_SAID:", "if True:"),
    ("views do not matter", "        if self.has_views:\n", "        if False:\n"),
    (
        "who closes early stays",
        '            self._give_up("it closed before the group was open", out)\n',
        "            pass\n",
    ),
    ("those who left are waited for", "self.closing.others &= remaining", "self.closing.others |= remaining"),
    ("no limit of closing", '                out.append(SetTimer("closing", within))\n', "                pass\n"),
)

DISCOVERY = changes(
    "live.discovery",
    ("other groups matter", "if not self.began or hello.group != self.group or", "if not self.began or"),
    ("two of a name both stay", "        if hello.name == self.name:\n", "        if False:\n"),
    ("we hear ourselves", " or hello.incarnation == self.incarnation:\n", ":\n"),
    (
        "old hellos count",
        "        if self.incarnation not in hello.hears:\n            return",
        "        if False:\n            return",
    ),
    ("nobody is named", "        self._remember(hello.incarnation)\n", ""),
    ("who is turned away goes at once", "        if not self.rounds_left:\n", "        if self.turned_away:\n"),
    ("who is turned away stays", "            self.rounds_left -= 1\n", "            pass\n"),
    (
        "who is turned away finds a group",
        "        if self.turned_away:\n            return  # who",
        "        if False:\n            return  # who",
    ),
    ("both of a name go", "        if stays and not self.turned_away:\n", "        if stays:\n"),
    (
        "who came second is not told by the others",
        "            if self.found:  # else",
        "            if False:  # else",
    ),
    ("who comes again is told to go", "            if self.found:  # else", "            if True:  # else"),
    (
        "who does not fit is told once",
        "if self.unfit is not None and self.round - self.unfit_at < FAREWELL:",
        "if False:",
    ),
    (
        "who does not fit cannot answer",
        "            if self.incarnation not in hello.hears:\n                out",
        "            if False:\n                out",
    ),
    ("the later of two stays", "ahead > CLOSE or", "ahead < -CLOSE or"),
    ("sizes do not matter", "        if hello.size != self.size:\n", "        if False:\n"),
    ("lives do not matter", "elif self.others[place].incarnation != hello.incarnation:", "elif False:"),
    ("old words count", "elif hello.round > self.others[place].round or hello.found:", "else:"),
    ("no answer to those who look", "            if self.found and not hello.found:\n", "            if False:\n"),
    ("place for all", "        if len(self.others) >= self.size:\n", "        if False:\n"),
    ("the first name leaves", "last = max(range", "last = min(range"),
    ("nobody is forgotten", "if self.round - round_ < FORGET_AFTER]", "]"),
    ("found before all agree", "if all(hello.knows == known for hello in self.others) or any(", "if True or any("),
    ("what another found is not enough", "hello.found and hello.knows == known for", "False for"),
    ("anybody's refusal is ours", "if not self.found and mine == (", "if not self.found and mine != ("),
)

MUTATIONS = OPENING + LIVENESS + CLOSING + SESSION + DISCOVERY
