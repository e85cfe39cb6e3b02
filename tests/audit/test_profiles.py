"""Service profiles: their files, and that each property is judged if it is on, and not if it is off."""

from pathlib import Path

import pytest

from ordercast.audit.completeness import PARTS, complete
from ordercast.audit.profiles import PROPERTIES, SHIPPED, Profile, asked_by, profile_of, read_profile, shipped
from ordercast.audit.reference import check_logs
from ordercast.audit.verdict import Verdict
from ordercast.model.errors import ConfigError
from ordercast.model.services import Service
from tests.audit.figures import Figure

SENT = ["a23 b23 c23", "", ""]
"""E1 sends three messages to E2 and E3."""


def profile(*on: str, destinations: str = "named") -> Profile:
    return profile_of("p", {"destinations": destinations, "properties": dict.fromkeys(on, True)}, "p.toml")


def violated(figure: Figure, asked: Profile | Service) -> set[str]:
    verdict = Verdict()
    check_logs(figure.logs(), asked, verdict)
    return {name for name, finding in verdict.findings.items() if finding.violations}


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return file


ALL = ("complete", "sender_order_kept", "key_order_kept", "same_order", "no_cycle", "numbers_dense")
BROKEN = [
    (["", "a b c", "a b c"], set()),
    (["", "a b c", "a b"], {"all_delivered"}),
    (["", "a b c", "a b c b"], {"delivered_once"}),
    (["", "a b c", "a c b"], {"sender_order_kept", "key_order_kept", "same_order", "no_cycle"}),
    (["", "a b c ?", "a b c"], {"nothing_extra"}),
    (["c", "a b c", "a b c"], {"nothing_extra"}),
]


@pytest.mark.parametrize(("received", "expected"), BROKEN)
def test_each_property_is_judged_if_it_is_on_and_not_if_it_is_off(received: list[str], expected: set[str]) -> None:
    figure = Figure(SENT, received)
    assert violated(figure, profile(*ALL)) == expected
    parts = {part.__name__ for part in PARTS}
    for name in (*parts, *ALL[1:]):
        assert violated(figure, profile(name)) == expected & {name}, name


def test_at_least_once_allows_a_second_delivery_and_no_loss() -> None:
    again = Figure(SENT, ["", "a b a b c", "a b c c"])
    assert violated(again, shipped("per-partition")) == set()
    assert violated(again, shipped("per-partition-once")) == {"delivered_once"}
    assert violated(Figure(SENT, ["", "a b a c", "a b c"]), shipped("at-least-once")) == set(), "b is there"
    assert violated(Figure(SENT, ["", "a a c", "a b c"]), shipped("at-least-once")) == {"all_delivered"}


def test_at_most_once_allows_a_loss_and_no_second_delivery() -> None:
    assert violated(Figure(SENT, ["", "a c", "b"]), shipped("at-most-once")) == set()
    assert violated(Figure(SENT, ["", "a a", "b"]), shipped("at-most-once")) == {"delivered_once"}


def test_two_sources_may_be_in_any_order_unless_the_order_is_total() -> None:
    two = Figure(["a34", "b34", "", ""], ["", "", "a b", "b a"])
    assert violated(two, shipped("per-partition")) == set()
    assert violated(two, shipped("total")) == {"same_order", "no_cycle"}


def test_keys_have_orders_of_their_own() -> None:
    keys = {"a": 1, "b": 2, "c": 1}
    assert violated(Figure(SENT, ["", "b a c", "a c b"], keys), shipped("per-key")) == set()
    assert violated(Figure(SENT, ["", "c b a", "a b c"], keys), shipped("per-key")) == {"key_order_kept"}
    assert violated(Figure(SENT, ["", "b a c", "a b c"], keys), shipped("per-partition")) == {"sender_order_kept"}


def test_a_gap_in_the_numbers_is_a_message_that_nobody_got() -> None:
    figure = Figure(SENT, ["", "a b c", "a b c"])
    figure.rows = [(*row[:5], 5 if row[5] == 2 else row[5], *row[6:]) for row in figure.rows]
    figure.names["c"] = (0, 5)
    verdict = Verdict()
    check_logs(figure.logs(), shipped("total-dense"), verdict)
    [witness] = verdict.findings["numbers_dense"].witnesses
    assert witness.violation.sentence == "E1 sent E1#5 next after E1#1"
    assert violated(figure, shipped("total")) == set()


def test_what_is_for_everybody_is_missed_by_everybody() -> None:
    figure = Figure(["a2", "", ""], ["", "a", ""])
    assert violated(figure, profile("all_delivered")) == set()
    assert violated(figure, profile("all_delivered", destinations="everybody")) == {"all_delivered"}


def test_a_base_is_changed_property_by_property(tmp_path: Path) -> None:
    file = written(tmp_path, 'base = "st"\n[properties]\ndelivered_once = false\nnumbers_dense = true\n')
    found = read_profile(file)
    assert (found.name, found.base, found.selective) == ("mine", Service.SELECTIVE_TOTAL, True)
    assert {"all_delivered", "same_order", "numbers_dense", "accepted_truthfully"} <= set(found.on)
    assert "delivered_once" not in found.on
    assert found.off == {"delivered_once"}
    assert profile_of("mine", found.as_document(), "again").on == found.on


def test_complete_is_all_of_its_parts() -> None:
    parts = tuple(part.__name__ for part in PARTS)
    assert profile(complete.__name__).on == parts
    assert profile_of("p", {"base": "po", "properties": {"complete": False}}, "p").on[:1] == ("sender_order_kept",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no property is on, so everything would hold"),
        ("[properties]\nall_delivered = false", "no property is on"),
        ("[propertys]\nall_delivered = true", r"no key 'propertys' \(did you mean 'properties'\?\)"),
        ("properties = 3", "properties must be a table"),
        ("[properties]\nall_delivred = true", r"no property 'all_delivred' \(did you mean 'all_delivered'\?\)"),
        ("[properties]\nall_delivered = 1", "all_delivered must be true or false, not 1"),
        ("[properties]\ncomplete = true\nall_delivered = false", "complete and all_delivered are both given"),
        ('base = "kafka"', "there is no service 'kafka' to begin with"),
        ('base = "st"\ndestinations = "everybody"', 'the base st has the destinations "named"'),
        ('destinations = "some"\n[properties]\ncomplete = true', "destinations must be"),
        ("title = 3\n[properties]\ncomplete = true", "title must be text"),
        ("= 3", "invalid TOML"),
    ],
)
def test_what_no_profile_says_is_refused_with_the_file(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        read_profile(written(tmp_path, text))
    assert "mine.toml" in str(caught.value)


def test_a_service_a_profile_and_a_file_are_asked_by_text(tmp_path: Path) -> None:
    assert asked_by("st") is Service.SELECTIVE_TOTAL
    assert asked_by("per-key") == shipped("per-key")
    assert asked_by(str(written(tmp_path, "[properties]\nsame_order = true"))) == Profile(
        "mine", "mine", selective=True, on=("same_order",), off=frozenset()
    )
    with pytest.raises(ConfigError, match="there is no service 'per-kay'"):
        asked_by("per-kay")
    with pytest.raises(ConfigError, match=r"cannot read the profile .*nowhere\.toml"):
        asked_by("nowhere.toml")


def test_the_list_of_shipped_profiles_is_that_of_the_files() -> None:
    folder = Path(__file__).parents[2] / "src/ordercast/audit/shipped_profiles"
    assert sorted(file.stem for file in folder.iterdir()) == list(SHIPPED)
    for name in SHIPPED:
        assert shipped(name).title
        assert set(shipped(name).on) <= set(PROPERTIES)
