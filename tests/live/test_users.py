"""Groups on one machine: those of two users, and many of one, do not get in each other's way."""

import asyncio
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ordercast import ConfigError, JoinError
from ordercast.live import user_key
from ordercast.live.local_groups import contacts_of
from ordercast.live.transport import addresses
from ordercast.live.transport.addresses import members_of
from ordercast.live.user_key import user_keys
from ordercast.wire.keys import KEY_VARIABLE
from tests.live.groups import group_of, join, member_of, new_name, run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without any key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(user_key, "own_folder", lambda: tmp_path / "temporary")
    return tmp_path / "ordercast"


def test_a_user_gets_one_key_which_nobody_else_can_read(home: Path) -> None:
    with ThreadPoolExecutor(8) as at_once:
        found = list(at_once.map(lambda _: user_keys(), range(16)))
    [secret] = {keys.by_id()[255] for keys in found if keys is not None}
    assert (home / "user.key").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in home.iterdir()] == ["user.key"], "nothing else is left"
    again = user_keys()
    assert again is not None
    assert again.by_id() == {255: secret}


def test_a_key_that_others_can_read_is_told(home: Path) -> None:
    user_keys()
    (home / "user.key").chmod(0o644)
    with pytest.raises(ConfigError, match=r"can be read by other users; run: chmod 600 .*the key of this user"):
        user_keys()
    with pytest.raises(ConfigError, match="the key of this user"):
        join("g", members=["A", "B"])
    join("g", members=["A", "B"], insecure=True)  # who wants none needs none


def test_something_else_in_the_place_of_the_key_is_told(home: Path) -> None:
    (home / "user.key").mkdir(parents=True)
    with pytest.raises(ConfigError, match="is not a file: remove it"):
        user_keys()


def test_what_another_user_left_there_counts_for_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `sudo` with the home of the one who called it."""
    first = user_keys()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    second = user_keys()
    assert first is not None
    assert second is None, "and nothing that this process writes is that one's"
    assert (home / "user.key").read_text().endswith(f"255:{first.by_id()[255].hex()}\n")


def test_without_a_home_the_key_is_in_a_folder_of_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(user_key, "own_folder", lambda: tmp_path)
    assert user_keys() is not None
    assert (tmp_path / "user.key").exists()


@pytest.mark.parametrize("lacks", ["a place", "the package"])
def test_without_a_key_there_is_a_warning(
    lacks: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if lacks == "a place":
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
        monkeypatch.setattr(user_key, "own_folder", lambda: tmp_path / "file")
    else:
        monkeypatch.setattr(user_key, "find_spec", lambda _: None)
    assert user_keys() is None
    assert "other users of this machine can take part in groups without a key" in caplog.text


def test_who_has_no_key_of_the_user_does_not_get_in_and_changes_nothing() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            name, contacts = groups["A"].name, list(map(str, contacts_of(groups["A"].name)))
            with pytest.raises(JoinError, match="and that the key is the group's"):
                await join_open(name, contacts)
            assert groups["A"].stats().datagrams_rejected["plaintext"] > 0
            await groups["A"].send(b"hello")
            assert (await groups["B"].receive()).payload == b"hello"

    async def join_open(name: str, contacts: list[str]) -> None:
        import ordercast  # noqa: PLC0415

        await ordercast.join(name, contacts=contacts, name="C", insecure=True, timeout=0.5)

    run(test)


def test_two_users_have_groups_of_one_name() -> None:
    """And a key, or none, makes it one group."""
    mine = members_of("orders", ["A", "B"])
    with pytest.MonkeyPatch.context() as other:
        other.setattr(os, "geteuid", lambda: 12345)
        theirs, shared = members_of("orders", ["A", "B"]), members_of("orders", ["A", "B"], shared=True)
    assert not set(mine.values()) & set(theirs.values())
    assert shared == members_of("orders", ["A", "B"], shared=True)


@pytest.mark.parametrize("how", ["insecure", "key", "environment"])
def test_members_of_several_users_agree_on_addresses_if_they_share_a_key(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"1:{'ab' * 32}"
    (tmp_path / "group.key").write_text(line)
    (tmp_path / "group.key").chmod(0o600)
    if how == "environment":
        monkeypatch.setenv(KEY_VARIABLE, line)
    given: dict[str, dict[str, Any]] = {
        "insecure": {"insecure": True},
        "key": {"key": tmp_path / "group.key"},
        "environment": {},
    }
    found = []
    for user in (1, 2):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        found.append(join("orders", members=["A", "B"], **given[how])._options.members)
    assert found[0] == found[1] == members_of("orders", ["A", "B"], shared=True)


def test_many_groups_of_one_machine_have_addresses_of_their_own() -> None:
    taken = [address for number in range(150) for address in members_of(f"group {number}", ["A", "B", "C"]).values()]
    assert len({address.host for address in taken}) == 150
    assert len(set(taken)) == 450


def test_a_port_that_a_program_has_everywhere_is_passed_over() -> None:
    name = new_name()
    before = members_of(name, ["A", "B"])["A"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as program:
        program.bind(("0.0.0.0", before.port))  # noqa: S104 (as programs do)
        after = members_of(name, ["A", "B"])["A"]
        assert after.port != before.port
        assert members_of(name, ["A", "B"])["A"] == after, "for all members the same"
    assert members_of(name, ["A", "B"])["A"] == before


def test_where_loopback_is_one_host_groups_have_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "_has_hosts", lambda: False)
    found = members_of("orders", ["A", "B"])
    assert {address.host for address in found.values()} == {"127.0.0.1"}
    assert found["A"].port != found["B"].port


def test_a_name_that_runs_already_is_told_as_such() -> None:
    async def test() -> None:
        async with group_of("A", "B") as groups:
            group = groups["A"].name
            with pytest.raises(ConfigError, match=r"cannot bind .*: A is running already on this machine$"):
                await join(group, members=["A", "B"], name="A")
            other = new_name()
            address = member_of(groups["A"]).address
            with pytest.raises(ConfigError, match=r"A is being started already .*, or another program uses its port"):
                await join(other, members={"A": str(address), "B": f"{address.host}:9"}, name="A")

    run(test)


def test_a_group_of_names_takes_in_who_knows_its_name_only() -> None:
    async def test() -> None:
        import ordercast  # noqa: PLC0415

        async with group_of("A", "B") as groups:
            later = await ordercast.join(groups["A"].name, contacts="local", name="C", timeout=10)
            await later.send(b"hello")
            assert (await groups["B"].receive()).payload == b"hello"
            await later.leave()

    asyncio.run(asyncio.wait_for(test(), 30))


def test_a_port_that_another_member_is_trying_just_now_is_not_passed_over() -> None:
    """All members find the same addresses, also if several of them look at the same moment."""
    name = new_name()
    expected = members_of(name, ["A", "B"])
    with ExitStack() as others:
        for host in ("127.255.255.1", "127.255.255.2"):
            other = others.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            other.bind((host, expected["A"].port))
        assert members_of(name, ["A", "B"]) == expected
