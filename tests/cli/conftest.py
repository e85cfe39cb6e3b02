"""The command line as scripts see it: its real entry, called in this process."""

import shlex
from collections.abc import Callable
from typing import NamedTuple

import pytest

from ordercast.cli import main


class Outcome(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """What it said on standard error, which must be one line for people and no stack trace."""
        assert self.err.startswith("ordercast: "), self.err
        assert self.err.count("\n") == 1
        assert self.err.endswith("\n")
        assert "[Errno" not in self.err
        return self.err.removeprefix("ordercast: ").rstrip("\n")


Command = Callable[..., Outcome]


@pytest.fixture
def ordercast(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Calls `ordercast` with a line of arguments as a shell would take it, and more arguments as they are."""
    monkeypatch.setenv("COLUMNS", "160")

    def call(line: str, *more: object) -> Outcome:
        monkeypatch.setattr("sys.argv", ["ordercast", *shlex.split(line), *map(str, more)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return Outcome(ended.value.code, *capsys.readouterr())

    return call
