"""The entry to all audits of complete traces: decides which engine audits a trace.

- the *reference* audit (`ordercast.audit`): the definitions, with a Python object for each event;
- the *vectorised* audit (`kernel`): array operations in this process, which find that a run passes or leave it to the
  reference audit; long runs are audited in partitions (`partitioned`);
- *Spark*: the same, by tasks on many cores or machines (`spark`).

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ordercast.model.progress import Progress

VECTORISED_FROM = 30_000
"""Events: below this, importing the kernel takes longer than the reference audit."""
SPARK_FROM = 50_000_000
"""Events: below this, starting Spark takes longer than the vectorised audit."""


class Engine(Enum):
    """How a trace is audited."""

    REFERENCE = "reference"
    VECTORISED = "vectorised"
    SPARK = "spark"


def choose_engine(events: int) -> Engine:
    """The fastest engine for a trace of so many events, of those that are installed."""
    if events >= SPARK_FROM and find_spec("pyspark"):
        return Engine.SPARK
    if events >= VECTORISED_FROM and find_spec("numpy") and find_spec("scipy"):
        return Engine.VECTORISED
    return Engine.REFERENCE


def audit(
    folders: Sequence[Location],
    service: Service | Profile | str | None = None,
    *,
    engine: Engine | None = None,
    spark: "SparkSession | None" = None,
    note: Callable[[str], None] | None = None,
    progress: "Progress | None" = None,
) -> Verdict:
    """Audits all runs of some trace folders; `service` replaces the one that each run promises.

    `service`: a service, a profile, or the name or file of one. `engine`: default: Spark if a session is given,
    otherwise by the size of the trace, in this process. Spark's workers
    must see the folders under the same paths. `note` is called with a sentence for each long run that cannot be audited
    in partitions; `progress` with the number of finished tasks and of all tasks, on Spark.

    Raises `TraceError` if a folder holds no complete trace, and `PipelineError` if Spark fails.
    """
    service = asked_by(service) if isinstance(service, str) else service
    if engine is Engine.REFERENCE:
        return reference.audit(folders, service)
    if engine is Engine.SPARK and spark is None:
        raise ConfigError("an audit on Spark needs a session: pass spark=")
    return audit_opened(open_trace(folders), service, engine=engine, spark=spark, note=note, progress=progress)


def audit_opened(
    trace: TraceFiles,
    service: Service | Profile | str | None = None,
    *,
    engine: Engine | None = None,
    spark: "SparkSession | None" = None,
    note: Callable[[str], None] | None = None,
    progress: "Progress | None" = None,
) -> Verdict:
    """The same of a trace whose files are open already: those of a store are not read twice."""
    service = asked_by(service) if isinstance(service, str) else service
    if engine is None:
        engine = Engine.SPARK if spark is not None else choose_engine(trace.events)
        if engine is Engine.SPARK and spark is None:
            engine = Engine.VECTORISED
    match engine:
        case Engine.REFERENCE:
            return reference.audit(trace.folders, service)
        case Engine.VECTORISED:
            from ordercast.pipeline.audit.vectorised import audit_vectorised  # noqa: PLC0415

            return audit_vectorised(trace, service, note=note)
        case Engine.SPARK:
            assert spark is not None
            from ordercast.pipeline.audit.spark import audit_on_spark  # noqa: PLC0415

            return audit_on_spark(spark, trace, service, note=note, progress=progress)
