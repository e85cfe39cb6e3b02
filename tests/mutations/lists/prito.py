"""Breakages of what PriTO adds to TO: priorities, and the ends of runs."""

from tests.mutations.mutation import changes

_FIRST = "while waiting and waiting[0][1] < self.acknowledged_count:"

PRIORITIES = changes(
    "protocols.prito",
    ("lower priorities come first", "(-packet.priority,", "(packet.priority,"),
    ("no priorities", "(-packet.priority,", "(0,"),
    (
        "of equal ones the last comes first",
        "(-packet.priority, self.preacknowledged_count,",
        "(-packet.priority, -self.preacknowledged_count,",
    ),
    ("whatever comes first is delivered", _FIRST, "while waiting:"),
    ("delivered one too early", _FIRST, "while waiting and waiting[0][1] <= self.acknowledged_count:"),
    ("one delivery at a time", _FIRST, "if waiting and waiting[0][1] < self.acknowledged_count:"),
    (
        "nobody notes who was overtaken",
        "            self.overtaken.add(self.acknowledged_count)\n",
        "            pass\n",
    ),
    (
        "delivered packets still count as overtaken",
        "            self.overtaken.remove(place)\n            self._deliver(packet, out)\n\n",
        "            self._deliver(packet, out)\n\n",
    ),
    ("acknowledgments are not counted", "            self.acknowledged_count += 1\n", ""),
    ("acknowledgment does not move", "            self.moved = True\n", ""),
    (
        "who gives up delivers what is preacknowledged",
        "        return []\n",
        "        return [packet for _, _, packet in sorted(self.by_priority)]\n",
    ),
)

RUNS = changes(
    "protocols.prito",
    ("markers reach one further", "if place < through], default=0)", "if place <= through], default=0)"),
    ("markers end one before", "enumerate(waiting, start=1) if", "enumerate(waiting) if"),
    ("markers end everything", "end = max([number for", "end = len(waiting) or max([number for"),
    ("markers end nothing more", "end = max([number for", "end = 0 and max([number for"),
    (
        "markers deliver what is not acknowledged",
        "            if place < self.acknowledged_count:\n                self.overtaken.remove",
        "            if True:\n                self.overtaken.discard",
    ),
    (
        "what a marker delivered stays",
        "entry for number, entry in enumerate(waiting) if number >= end or entry[1] >= self.acknowledged_count",
        "entry for entry in waiting",
    ),
    ("what a marker steps over is lost", "if number >= end or entry[1] >= self.acknowledged_count", "if number >= end"),
    ("markers of others do not count", "self.covered_below = max(self.covered_below, unit.through)", "pass"),
    ("runs are always ended", "and self.config.priority.synchronises and", "and"),
    ("runs are never ended", "if self.overtaken and not self.run_timer and", "if False and"),
    (
        "the timer runs though a marker is under way",
        "self.config.priority.synchronises and self._uncovered()",
        "self.config.priority.synchronises",
    ),
    ("covered one too far", "place >= self.covered_below for", "place > self.covered_below for"),
    ("never covered", "place >= self.covered_below for", "True for"),
    ("the run timer runs once", "            self.run_timer = False\n            if", "            if"),
    ("markers are sent though stopped", "if self.mode is Mode.NORMAL and self._uncovered():", "if self._uncovered():"),
    (
        "markers are sent for nothing",
        "if self.mode is Mode.NORMAL and self._uncovered():",
        "if self.mode is Mode.NORMAL:",
    ),
    ("a marker covers nothing for its sender", "                self.covered_below = self.acknowledged_count\n", ""),
    (
        "a marker acts when it is sent (F6)",
        "                self.covered_below = self.acknowledged_count\n",
        "                self.covered_below = self.acknowledged_count\n                self._close_run(99, out)\n",
    ),
    (
        "a marker covers nothing",
        "RunMarker(self._heading_in_sequence(), self.acknowledged_count)",
        "RunMarker(self._heading_in_sequence(), 0)",
    ),
    ("a marker takes no number", "RunMarker(self._heading_in_sequence(),", "RunMarker(self._heading(),"),
    ("the others' timers are not heard", "            super()._fire(name, out)\n", "            pass\n"),
)

MUTATIONS = [*PRIORITIES, *RUNS]
