"""What opening a session leaves behind, however it ends."""

import tempfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ordercast.model.errors import ConfigError
from ordercast.pipeline import session


@pytest.mark.parametrize(("ends_by", "kept"), [(KeyboardInterrupt, 0), (ConfigError, 1)])
def test_what_spark_said_is_kept_only_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_by: type[BaseException], kept: int
) -> None:
    def started(*_: object) -> SparkSession:
        raise ends_by

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(session, "set_up_environment", lambda: None)
    monkeypatch.setattr(session, "_open", started)
    with pytest.raises(ends_by), session.session():
        pass
    assert len(list(tmp_path.iterdir())) == kept
