"""Breakages of the search itself: promises that it does not look at, and interleavings that it leaves out wrongly."""

from tests.mutations.mutation import changes

JUDGED_AT_A_NODE = changes(
    "explorer.nodes",
    ("deliveries may come twice", "        if self.delivered & bit:\n", "        if False:\n"),
    ("levels may come twice", "        if self.reached[level] & bit:\n", "        if False:\n"),
    ("levels may be passed over", " and not self.reached[level - 1] & bit:", " and False:"),
    (
        "delivered before it is acknowledged",
        "self._scenario.promise.ladder and not self.reached",
        "False and not self.reached",
    ),
    ("delivered to anybody", "        if self._node not in item.destinations:\n", "        if False:\n"),
    ("accepted by anybody", "        if not for_me and (item.source", "        if False and (item.source"),
    ("in any order of the sender", "        if lacking:\n", "        if False:\n"),
    ("numbered in any order", "        if mine[self.numbered : self.numbered + 1] != [item]:\n", "        if False:\n"),
    ("whoever gives up is right", "            case Abort(why=why):\n", "            case Abort(why=why) if False:\n"),
    ("what goes down is well", "            if now < was:\n", "            if False:\n"),
)

JUDGED_TOGETHER = changes(
    "explorer.world",
    ("levels are taken at their word", "if effect.risen and (promise.ladder or promise.views):", "if False:"),
    ("orders may go round in a circle", " and not self._is_one_order(state):", " and False:"),
    ("logs may differ", "promise.views and not self._is_one_log(state):", "False:"),
    (
        "nothing is ever lost",
        "            if self.links.loses[link - self.first_link]:\n                for",
        "            if False:\n                for",
    ),
    ("timers never fire", "        if state[self.firings] and not", "        if False and not"),
    ("nobody crashes", "        if state[self.crashes]:\n", "        if False:\n"),
    (
        "nothing comes again later",
        "        if state[self.duplicates] and self.scenario",
        "        if False and self.scenario",
    ),
)

ENDS = changes(
    "explorer.completion",
    (
        "whatever is lacking in the end",
        "            elif problem := self._lacking(state):\n",
        '            elif problem := "":\n',
    ),
    (
        "one continuation suffices",
        "for apart, manner in enumerate(_MANNERS):",
        "for apart, manner in enumerate(_MANNERS[:1]):",
    ),
    ("there is no end to rounds", "            if timers and len(trail) == self._rounds:\n", "            if False:\n"),
    (
        "storms have an end",
        "        except _StormError:\n            return False\n",
        "        except _StormError:\n            return True\n",
    ),
)

SEARCHED = changes(
    "explorer.explore",
    ("final states are not continued", "        if self._eager or not free:\n", "        if False:\n"),
    (
        "what is reached anew is not woken",
        "        if known is None or (woken and known & EXPANDED):\n",
        "        if known is None:\n",
    ),
    ("circles of receipts are passed over", "        if comes_back and not", "        if False and not"),
)

LEFT_OUT = changes(
    "explorer.reduction",
    ("nothing new is in what was empty", "if self._bags or state[first_link + link] == EMPTY:", "if False:"),
    ("senders on one channel are apart", "            if self._one and asleep:\n", "            if False:\n"),
    (
        "what comes later is apart from what is sent",
        "return asleep if step & 7 != Kind.LATER else asleep & ~self._sending(state)",
        "return asleep",
    ),
    (
        "who goes on is no matter",
        "            if self._changes_who_goes_on(state[node], effect.next):\n                return 0\n",
        "",
    ),
    ("anybody goes first", "        if len(speakers) > 1:\n", "        if False:\n"),
    (
        "what others claim is no matter",
        "if not any(alone.brings & other.claims for other in everybody if other is not alone):",
        "if True:",
    ),
    ("nobody is patient", "            if self._patient and all(", "            if False and all("),
)

MUTATIONS = [*JUDGED_AT_A_NODE, *JUDGED_TOGETHER, *ENDS, *SEARCHED, *LEFT_OUT]
