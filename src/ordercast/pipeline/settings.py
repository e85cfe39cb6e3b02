"""Which settings a Spark of ours has: those of the user, and ours where the user says nothing.

On a cluster these are few: its user interface, event log, memory and partitions are the user's.
"""

import os
import re
import shlex
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

_EVERYWHERE = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
}
_EMBEDDED = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.driver.memory": "1g",
}
_DEFAULTS = "spark-defaults.conf"
_SETTING = re.compile(r"\s*([^\s=:#!][^\s=:]*)(?:\s*[=:]\s*|\s+)(.*?)\s*")


def settings_of(master: str, asked: Mapping[str, str]) -> dict[str, str]:
    """What to set; `asked`: by the user, for this session."""
    ours = {**_EVERYWHERE, **_EMBEDDED} if master.startswith("local") else _EVERYWHERE
    known = users_settings(os.environ)
    return {**{name: value for name, value in ours.items() if name not in known}, **asked}


def users_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """What `spark-defaults.conf` and PYSPARK_SUBMIT_ARGS say, which Spark reads itself when it starts."""
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (str(Path(home) / "conf") if home else "")
    found: dict[str, str] = {}
    try:
        lines = (Path(folder) / _DEFAULTS).read_text(encoding="utf-8").splitlines() if folder else []
    except (OSError, UnicodeDecodeError):  # Spark says what is wrong with it
        lines = []
    for line in lines:
        if told := _SETTING.fullmatch(line):
            found[told[1]] = told[2]
    words = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    for option, value in pairwise(words):
        name, equals, rest = value.partition("=")
        if option in {"--conf", "-c"} and equals:
            found[name] = rest
    return found
