"""An explicit-state model checker: every schedule of a small group, on the protocols' own machines.

`state_space` has the states and transitions, `scenario` what is promised, `explore` the search, `reduction` the
partial-order reduction, `continuations` the liveness check, `counterexample` the result.
"""

from ordercast.explorer.explore import Search, SearchReport
from ordercast.explorer.scenario import Promise, Scenario

__all__ = ["Promise", "Scenario", "Search", "SearchReport"]
