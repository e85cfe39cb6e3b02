"""`ordercast gateway`: what it refuses, before it joins. What it does is tested with the sink."""

from pathlib import Path

import pytest

from tests.cli.conftest import Command


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("", "give --members A,B,C to open a group, or --join local to join one that is running"),
        ("--members A,B --join local", "give --members A,B,C to open a group, or --join local"),
        ("--members A,B --listen 70000", "--listen: ports are 1 to 65535, and 0 is any free one, not 70000"),
        ("--members A,B --listen 0.0.0.0:7700", "0.0.0.0 can be reached by others, who could send to the group: give"),
        ("--members A,B --token-file none", "cannot read the token or the certificate: No such file"),
        ("--members A,B --token-file empty", "--token-file: there is no token in empty; write one into it, or omit"),
        ("--members A,B --order partial", "a log has one position for each message, the same at all members"),
        ("--members B,C", "'A' is not a member; members are: B, C"),
    ],
)
def test_wrong_arguments_are_told(
    ordercast: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: str, told: str
) -> None:
    monkeypatch.delenv("ORDERCAST_GATEWAY_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    done = ordercast(f"gateway results --name A --log logs {arguments}")
    assert done.status == 2
    assert told in done.sentence
