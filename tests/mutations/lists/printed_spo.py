"""Deliberate breakages of SPO as printed: rules read otherwise than they stand."""

from tests.mutations.mutation import changes

MUTATIONS = changes(
    "protocols.spo_paper",
    ("duplicates by TSEQ only", " or packet.seq_to[self.me] < self.expected_to_me[source]", ""),
    (
        "what is expected is a duplicate",
        "return packet.seq < self.expected[source] or",
        "return packet.seq <= self.expected[source] or",
    ),
    ("duplicates are always looked at first", "(self.config.paper.duplicates_first or not acceptable)", "True"),
    (
        "both parts of condition 1",
        "packet.seq != self.expected[source] and packet.seq_to",
        "packet.seq != self.expected[source] or packet.seq_to",
    ),
    ("condition 2 is strict", "seq <= self.expected[node] or", "seq < self.expected[node] or"),
    ("the source is never asked about", "(node == source and rule is HearsayRule.OTHERS)", "node == source"),
    ("TREQ counts units", "self.expected[source] = packet.seq + 1", "self.expected[source] += 1"),
    ("AL is of the receiver", "self.accepted_below[of][source] = seq", "self.accepted_below[of][self.me] = seq"),
    ("free buffers are not heard", "        self.free_buffers[source] = unit.status.free\n", ""),
    (
        "SL is kept for ever",
        "        self.sent = [mine for mine in self.sent if not self._can_preacknowledge(mine)]\n",
        "",
    ),
    ("foreign units are kept", "if not packet.destinations >> self.me & 1:", "if False:"),
    ("PREQ stands still", "        self.expected_to_me[source] = packet.seq_to[self.me] + 1\n", ""),
    ("everybody must have said so", "for node in members(packet.destinations))", "for node in range(len(said)))"),
    ("who expects it has it", "return all(packet.seq < said[node]", "return all(packet.seq <= said[node]"),
    ("PAL is not noted", "self.preacknowledged_below[of][source] = seq", "pass"),
    (
        "acknowledged by AL",
        "return _is_below(unit.packet, self.preacknowledged_below[unit.source])",
        "return _is_below(unit.packet, self.accepted_below[unit.source])",
    ),
    (
        "acknowledged, not delivered",
        "[Reached(Level.ACKNOWLEDGED, packet), Deliver(packet)]",
        "[Reached(Level.ACKNOWLEDGED, packet)]",
    ),
    ("the window is one wider", "< lowest + min(self.config.window", "<= lowest + min(self.config.window"),
    ("buffers do not close the window", "min(self.config.window, self._buffers_for_me())", "self.config.window"),
    ("n instead of n squared", "self.config.nodes**2", "self.config.nodes"),
    (
        "a gap by TSEQ",
        "return self.expected_to_me[unit.source] < unit.packet.seq_to[self.me]",
        "return self.expected[unit.source] < unit.packet.seq",
    ),
    (
        "hearsay of the source too",
        "if node != unit.source and self.expected[node] < seq]",
        "if self.expected[node] < seq]",
    ),
    ("hearsay of what is expected", "self.expected[node] < seq]", "self.expected[node] <= seq]"),
    (
        "hearsay sets no timer",
        "                out.append(SetTimer(self._timers[node], self.config.timing.hearsay))\n",
        "",
    ),
    (
        "timers fire for nothing",
        "        self.timer_running[source] = False\n        return [self._request()]",
        "        return [self._request()]",
    ),
    ("a unit of its source stops no timer", "out = self._stop_timer(source)", "out: list[Output] = []"),
    ("only gaps ask", "if gap or waited:", "if gap:"),
    ("everything asks", "if gap or waited:", "if True:"),
    ("copies for everybody", " and unit.packet.destinations >> asking & 1]", "]"),
    ("copies from one later on", "if unit.packet.seq >= start and", "if unit.packet.seq > start and"),
    ("copies are fresh", "if not self.config.paper.verbatim_copies:", "if True:"),
    (
        "one answers itself",
        "return self._resend(request) if request.source != self.me else []",
        "return self._resend(request)",
    ),
)
