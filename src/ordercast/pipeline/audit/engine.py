"""The entry to all audits of complete traces: decides which engine audits a trace.

- the *reference* audit (`ordercast.audit`): the definitions, with a Python object for each event;
- the *vectorised* audit (`kernel`): array operations on this machine, in a process for each core if there is much,
  which find that a run passes or leave it to the reference audit; long runs are audited in partitions (`partitioned`);
- *Spark*: the same, by tasks of a cluster (`spark`).

All give the same verdict. A trace that still grows is followed by `stream`. Modules of an engine are imported when it
is used: an audit in this process imports no Spark, and one of a small trace no SciPy.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ordercast.audit import reference
from ordercast.audit.profiles import Profile, asked_by
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import ConfigError
from ordercast.model.services import Service
from ordercast.pipeline.audit.plan import TraceFiles, open_trace
from ordercast.trace.storage import Location
from ordercast.trace.storage import location as located

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ordercast.model.progress import Progress
    from ordercast.pipeline.audit.tables import VerdictTables

VECTORISED_FROM = 30_000
"""Events: below this, importing the kernel takes longer than the reference audit."""


class Engine(Enum):
    """How a trace is audited."""

    REFERENCE = "reference"
    VECTORISED = "vectorised"
    SPARK = "spark"


def choose_engine(events: int) -> Engine:
    """The engine that takes the least CPU for a trace of so many events on one machine, of those that are installed.

    That is never Spark, which is for what one machine cannot do.
    """
    if events >= VECTORISED_FROM and find_spec("numpy") and find_spec("scipy"):
        return Engine.VECTORISED
    return Engine.REFERENCE


def audit(  # noqa: PLR0913 - all but the first two by name
    folders: Sequence[Location | str],
    service: Service | Profile | str | None = None,
    *,
    engine: Engine | None = None,
    spark: "SparkSession | None" = None,
    note: Callable[[str], None] | None = None,
    progress: "Progress | None" = None,
    processes: int | None = None,
) -> Verdict:
    """Audits all runs of some trace folders, which may be URLs; `service` replaces the one that each run promises.

    `service`: a service, a profile, or the name or file of one. `engine`: default: Spark if a session is given,
    otherwise by the size of the trace, in this process. Spark's workers
    must see the folders under the same paths. `processes`: of this machine; default: one for each core if there is much
    to do. `note` is called with a sentence for each long run that cannot be audited
    in partitions; `progress` with the number of finished tasks and of all tasks, on Spark.

    Raises `TraceError` if a folder holds no complete trace, and `PipelineError` if Spark fails.
    """
    service = asked_by(service) if isinstance(service, str) else service
    places = [located(folder) for folder in folders]
    if engine is Engine.REFERENCE:
        return reference.audit(places, service)
    if engine is Engine.SPARK and spark is None:
        raise ConfigError("an audit on Spark needs a session: pass spark=")
    return audit_opened(
        open_trace(places), service, engine=engine, spark=spark, note=note, progress=progress, processes=processes
    )


def audit_to_tables(
    folders: Sequence[Location | str],
    service: Service | Profile | str | None = None,
    *,
    spark: "SparkSession",
    note: Callable[[str], None] | None = None,
) -> "VerdictTables":
    """The verdicts on all runs of some trace folders as DataFrames, for more runs than one verdict should list.

    Runs that fit into a task are judged when the tables are read, and each time: cache them. A run that cannot be
    audited has a row whose `error` says why.
    """
    from ordercast.pipeline.audit.spark import verdicts_on_spark  # noqa: PLC0415

    return verdicts_on_spark(spark, folders, service, note=note)


def audit_opened(  # noqa: PLR0913 - all but the first two by name
    trace: TraceFiles,
    service: Service | Profile | str | None = None,
    *,
    engine: Engine | None = None,
    spark: "SparkSession | None" = None,
    note: Callable[[str], None] | None = None,
    progress: "Progress | None" = None,
    processes: int | None = None,
) -> Verdict:
    """The same of a trace whose files are open already: those of a store are not read twice."""
    service = asked_by(service) if isinstance(service, str) else service
    if engine is None:
        engine = Engine.SPARK if spark is not None else choose_engine(trace.events)
    match engine:
        case Engine.REFERENCE:
            return reference.audit(trace.folders, service)
        case Engine.VECTORISED:
            from ordercast.pipeline.audit.vectorised import audit_vectorised  # noqa: PLC0415

            return audit_vectorised(trace, service, note=note, processes=processes)
        case Engine.SPARK:
            assert spark is not None
            from ordercast.pipeline.audit.spark import audit_on_spark  # noqa: PLC0415

            return audit_on_spark(spark, trace, service, note=note, progress=progress)
