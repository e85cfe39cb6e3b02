"""Settings: checked when they are made, equal if they mean the same, kept in TOML."""

from dataclasses import FrozenInstanceError, fields, replace
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from ordercast import ConfigError, Order, Settings
from ordercast.live.settings import OTHER_PROTOCOLS, PROTOCOLS, RELAYED_PROTOCOLS, protocol_of
from ordercast.model.config import Rules
from ordercast.model.runs import Channel
from ordercast.protocols.registry import PROTOCOLS as MACHINES
from ordercast.protocols.registry import machine_class

ALL_GIVEN = Settings(
    order="total",
    window=7,
    delivery="stable",
    recovery="place",
    quorum="static",
    failure_timeout=5,
    pause_timeout=20,
    slow_reader_timeout=30,
    round_trip=0.25,
    mtu=1400,
    max_datagram_size=1400,
    max_message_size=1000,
    multicast="239.7.7.7:7000",
    relay='[fe80::1%a"b]:7000',
)


def test_settings_are_frozen_and_given_by_name() -> None:
    settings = Settings()
    with pytest.raises(FrozenInstanceError):
        settings.window = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        Settings("total")  # type: ignore[call-arg]
    assert replace(settings, window=3) == Settings(window=3) != settings
    assert {Settings(): 1}[Settings()] == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("windw", r"did you mean 'window'\?"),
        ("silence", "it is called 'failure_timeout'"),
        ("colour", "it has: order, window, resilience"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_one_that_may_be_meant(name: str, hint: str) -> None:
    wrong: dict[str, Any] = {name: 1}
    for make in (Settings, Settings.lan, partial(replace, Settings())):
        with pytest.raises(TypeError, match=rf"^Settings has no '{name}'; {hint}"):
            make(**wrong)
    assert list(signature(Settings).parameters) == [field.name for field in fields(Settings)]


@pytest.mark.parametrize(
    "order", [*Order, *(each.value for each in Order), *PROTOCOLS.values(), *sorted(OTHER_PROTOCOLS)]
)
def test_an_order_is_known_by_several_names(order: str) -> None:
    settings = Settings(order=order)
    assert type(settings.order) is str
    assert protocol_of(settings.order) in MACHINES
    assert settings == Settings(order=settings.order)
    assert Settings(order="st") == Settings(order="total") == Settings(order=Order.TOTAL)


@pytest.mark.parametrize("order", ["alphabetical", "", "Total", None, 3, "ALL"])
def test_an_unknown_order_is_refused_with_those_that_there_are(order: Any) -> None:
    with pytest.raises(ConfigError, match=r"unknown order .*; choose one of: partial, total, priority, sequenced"):
        Settings(order=order)


def test_the_protocols_that_need_a_relay_are_those_of_one_channel() -> None:
    live = {*PROTOCOLS.values(), *OTHER_PROTOCOLS}
    assert {name for name in live if machine_class(name, Rules.SOUND).needs is Channel.ONE} == RELAYED_PROTOCOLS


@pytest.mark.parametrize(
    ("least", "most", "field"),
    [
        (0.5, 600, "failure_timeout"),
        (2, 86_400, "slow_reader_timeout"),
        (1e-9, 10, "round_trip"),
        (512, 65_507, "max_datagram_size"),
        (1, 1 << 30, "max_message_size"),
    ],
)
def test_the_ends_of_a_range_are_within_it(least: float, most: float, field: str) -> None:
    for value in (least, most):
        assert getattr(Settings(**{field: value}), field) == value  # type: ignore[arg-type]
    for value in (least - 1, most + 1):
        with pytest.raises(ConfigError, match=f"{field} must be .*, not "):
            Settings(**{field: value})  # type: ignore[arg-type]


def test_no_fragmentation_is_a_choice_and_a_tiny_packet_is_not() -> None:
    assert Settings(mtu=0).mtu == 0
    assert Settings(mtu=512).mtu == 512
    with pytest.raises(ConfigError, match="mtu must be at least 512 bytes, or 0 for no fragmentation, not 511"):
        Settings(mtu=511)


@pytest.mark.parametrize("delivery", ["acknowledged", "", None, 3])
def test_an_unknown_delivery_is_refused(delivery: Any) -> None:
    with pytest.raises(ConfigError, match="delivery must be one of known_stable, stable, not "):
        Settings(delivery=delivery)


@pytest.mark.parametrize("order", ["priority", "sequenced", "to", "po"])
def test_delivery_of_what_is_stable_is_for_partial_and_total_only(order: str) -> None:
    Settings(order=order, delivery="known_stable")
    with pytest.raises(
        ConfigError, match=f"delivery has no effect for order '{order}', only for 'partial' and 'total'"
    ):
        Settings(order=order, delivery="stable")


@pytest.mark.parametrize("recovery", ["selective", "", None, 3])
def test_an_unknown_recovery_is_refused(recovery: Any) -> None:
    with pytest.raises(ConfigError, match="recovery must be one of agree, place, not "):
        Settings(recovery=recovery)


@pytest.mark.parametrize("order", ["partial", "priority", "sequenced", "to"])
def test_recovery_is_for_total_only(order: str) -> None:
    Settings(order=order, recovery="agree")
    with pytest.raises(ConfigError, match=f"recovery has no effect for order '{order}', only for 'total'"):
        Settings(order=order, recovery="place")


@pytest.mark.parametrize("quorum", ["majority", "", None, 3])
def test_an_unknown_quorum_is_refused(quorum: Any) -> None:
    with pytest.raises(ConfigError, match="quorum must be one of last_view, static, not "):
        Settings(quorum=quorum)


def test_presets_can_be_overridden() -> None:
    assert Settings.local().mtu == 0
    assert Settings.lan(order="sequenced", mtu=1400) == Settings(order="sequenced", mtu=1400, failure_timeout=3.0)
    assert Settings.wan().mtu == 1280 - 48, "the smallest packets of IPv6, without the headers of IPv6 and UDP"
    assert Settings.wan(failure_timeout=20).failure_timeout == 20


@pytest.mark.parametrize("settings", [Settings(), Settings.wan(order="sequenced", resilience=1), ALL_GIVEN])
def test_toml_gives_the_same_settings_again(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(settings.to_toml())
    assert Settings.from_toml(path) == Settings.from_toml(str(path)) == settings


def test_every_field_can_be_in_a_file() -> None:
    assert {line.split(" = ")[0] for line in ALL_GIVEN.to_toml().splitlines()} == {
        field.name for field in fields(Settings)
    }


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("window = 3\nwindw = 4", r"settings\.toml: Settings has no 'windw'; did you mean 'window'\?"),
        ("[settings]\nwindow = 3", r"settings\.toml: \[settings\]: the fields stand at the top, without a table"),
        ("window = 0", r"settings\.toml: window must be at least 1, not 0"),
        ("window = '3'", "window must be a whole number, not '3'"),
        ("window = ", "invalid TOML in .*toml: "),
        ("window = 3 # \udcff", "invalid TOML in .*toml: "),
    ],
)
def test_a_file_that_is_wrong_is_named_with_what_is_wrong(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=sentence):
        Settings.from_toml(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read settings from .*none.toml: No such file"):
        Settings.from_toml(tmp_path / "none.toml")


@pytest.mark.parametrize("field", ["multicast", "relay"])
def test_addresses_are_checked(field: str) -> None:
    with pytest.raises(ConfigError, match=r"'10.0.0.1' is not an address"):
        Settings(**{field: "10.0.0.1"})  # type: ignore[arg-type]
