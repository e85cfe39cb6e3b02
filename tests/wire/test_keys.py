"""Keys as people write them, and that nothing ever shows one."""

from pathlib import Path

import msgspec
import pytest

from ordercast.model.errors import ConfigError
from ordercast.wire.keys import GroupKeys, keys_from_environment, keys_from_file, keys_from_text, new_key

ONE = "0123456789abcdef" * 4
TWO = "FEDCBA9876543210" * 4


def test_the_first_key_is_the_current_one() -> None:
    keys = keys_from_text(f"# of the group\n\n 7:{ONE} # from May on\n1:{TWO}\n", "here")
    assert keys.current == 7
    assert keys.by_id() == {7: bytes.fromhex(ONE), 1: bytes.fromhex(TWO)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no key in here"),
        ("# nothing\n", "no key in here"),
        (f"\n{ONE}", "line 2 of here is not a key"),
        (f"1:{ONE[:-1]}", "line 1 of here is not a key"),
        (f"1:{ONE}0", "line 1 of here is not a key"),
        (f"1:{ONE[:-1]}g", "line 1 of here is not a key"),
        (f"1:{ONE}:{ONE}", "line 1 of here is not a key"),
        (f"-1:{ONE}", "line 1 of here is not a key"),
        (f"{ONE}:1", "line 1 of here is not a key"),
        (f"١:{ONE}", "line 1 of here is not a key"),
        (f"0:{ONE}", "1 to 255, not 0"),
        (f"256:{ONE}", "1 to 255, not 256"),
        (f"3:{ONE}\n3:{TWO}", "line 2 of here repeats the id 3"),
    ],
)
def test_a_wrong_line_is_told_without_the_key(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        keys_from_text(text, "here")
    assert sentence in str(caught.value)
    assert ONE[:8] not in str(caught.value)
    assert caught.value.__context__ is None, "what an error came from is printed with it"


def test_keys_handed_over_in_python_are_checked_too() -> None:
    with pytest.raises(ConfigError, match="at least one"):
        GroupKeys({})
    with pytest.raises(ConfigError, match="32 bytes, and key 4 has 31"):
        GroupKeys({4: bytes(31)})


def test_nothing_shows_a_key() -> None:
    keys = keys_from_text(f"7:{ONE}\n1:{TWO}", "here")
    assert repr(keys) == str(keys) == "GroupKeys(current=7, known=[7, 1])"
    with pytest.raises(TypeError):
        msgspec.json.encode(keys)


def test_a_file_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(new_key(3) + "\n" + new_key(2))
    for mode in (0o604, 0o640, 0o620, 0o601, 0o666):
        path.chmod(mode)
        with pytest.raises(ConfigError, match=f"run: chmod 600 {path}"):
            keys_from_file(path)
    for mode in (0o600, 0o400):
        path.chmod(mode)
        assert list(keys_from_file(path).by_id()) == [3, 2]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"cannot read the keys in .*No such file or directory; check the path, or make a key: "
    ):
        keys_from_file(tmp_path / "none")
    tmp_path.chmod(0o700)
    with pytest.raises(ConfigError, match=r"cannot read the keys in .*directory"):
        keys_from_file(tmp_path)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes(b"\xff\xfe\x00" * 30)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=f"line 1 of {path} is not a key"):
        keys_from_file(path)


def test_keys_of_the_environment() -> None:
    assert keys_from_environment({}) is None
    keys = keys_from_environment({"ORDERCAST_KEY": f"2:{ONE}"})
    assert keys is not None
    assert keys.by_id() == {2: bytes.fromhex(ONE)}
    with pytest.raises(ConfigError, match="no key in the variable ORDERCAST_KEY"):
        keys_from_environment({"ORDERCAST_KEY": ""})  # who sets it does not want to speak in the clear


def test_new_keys_differ_and_are_read_back() -> None:
    lines = [new_key(key_id) for key_id in (1, 255)]
    one, two = keys_from_text("\n".join(lines), "here").by_id().values()
    assert one != two
    assert new_key() != new_key()
