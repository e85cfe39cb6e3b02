"""The data pipeline: parameter sweeps on Spark, and audits of traces of any size.

Functions that need Spark take a session as an argument, and use only its DataFrame API, so that they work through Spark
Connect as well. Importing this package imports neither Spark nor SciPy; each function imports what it needs.
"""

from ordercast.audit.profiles import Profile, read_profile
from ordercast.explorer.counterexample import Counterexample
from ordercast.explorer.explore import SearchProgress, SearchReport
from ordercast.explorer.scenario import Promise, Scenario
from ordercast.explorer.scenarios import scenario
from ordercast.model.progress import Progress
from ordercast.pipeline.audit.engine import Engine, audit, audit_to_tables, choose_engine
from ordercast.pipeline.audit.stream.follow import follow
from ordercast.pipeline.audit.tables import VerdictTables, audit_tables
from ordercast.pipeline.explore import explore_on_spark
from ordercast.pipeline.ingest.client_logs import from_client_logs
from ordercast.pipeline.ingest.tables import LogTables, from_log
from ordercast.pipeline.ingest.write_trace import write_trace
from ordercast.pipeline.soak.soak import Limits, Round, Soak, soak
from ordercast.pipeline.sweep.dataframe_format import register
from ordercast.pipeline.sweep.grid import read_grid
from ordercast.pipeline.sweep.measure import measure
from ordercast.pipeline.sweep.sweep import SweepResult, require_sweepable, sweep
from ordercast.swarm.soak import Soaked, Tally
from ordercast.trace.reader import RunRow

# Some functions have the name of the package that they come from (audit, soak, sweep). Since these packages are
# loaded above, the names stand for the functions, whatever is imported later.
__all__ = [
    "Counterexample",
    "Engine",
    "Limits",
    "LogTables",
    "Profile",
    "Progress",
    "Promise",
    "Round",
    "RunRow",
    "Scenario",
    "SearchProgress",
    "SearchReport",
    "Soak",
    "Soaked",
    "SweepResult",
    "Tally",
    "VerdictTables",
    "audit",
    "audit_tables",
    "audit_to_tables",
    "choose_engine",
    "explore_on_spark",
    "follow",
    "from_client_logs",
    "from_log",
    "measure",
    "read_grid",
    "read_profile",
    "register",
    "require_sweepable",
    "scenario",
    "soak",
    "sweep",
    "write_trace",
]
