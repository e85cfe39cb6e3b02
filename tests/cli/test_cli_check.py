"""`ordercast check` as scripts see it."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command

A1 = "check spo --rules paper --script 'x{2,3}; q{2} r{2}; s{2}' --losses 0"


@pytest.mark.parametrize("protocol", ["spo", "st", "to", "po", "prito", "prio", "sequencer"])
def test_every_protocol_is_checked_without_more_ado(ordercast: Command, protocol: str) -> None:
    done = ordercast(f"check {protocol} --nodes 2 --jobs 1")
    assert done.status == 0, done.out
    assert f"{protocol}, sound rules, channel " in done.out
    assert "(exhaustive)" in done.out
    assert "no promise is broken by any schedule" in done.out


def test_what_is_searched_is_told_to_programs(ordercast: Command) -> None:
    done = ordercast("check spo --script 'a{2,3} b{2}; c{1,3};' --losses 1 --window 7 --json")
    told = json.loads(done.out)
    assert done.status == 0
    assert (told["group"]["nodes"], told["group"]["window"]) == (3, 7)
    assert told["scripts"] == ["a{2,3} b{2}", "c{1,3}", ""]
    assert (told["protocol"], told["rules"], told["channel"]) == ("spo", "sound", "many")
    assert (told["losses"], told["firings"], told["exhausted"], told["counterexample"]) == (1, 0, True, None)
    assert told["states"] > 100
    every = json.loads(
        ordercast("check spo --script 'a{2,3} b{2}' --script 'c{1,3}' --json --no-reduction --jobs 1").out
    )
    assert every["scripts"] == told["scripts"]
    assert every["states"] > told["states"]
    assert every["edges"] > told["edges"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_broken_is_told_drawn_and_written_down(ordercast: Command, tmp_path: Path, jobs: int) -> None:
    """A1: at E2 the message x is acknowledged while E3 has not pre-acknowledged it."""
    file, svg = tmp_path / "a1.toml", tmp_path / "a1.svg"
    done = ordercast(A1, "--jobs", jobs, "--write", file, "--svg", svg)
    assert done.status == 1
    sentence = "x{2,3} of E1 is acknowledged at E2, but not yet preacknowledged at its destination E3"
    assert sentence in done.out
    assert "E1 sends x{2,3}" in done.out
    assert "↺" in done.out  # the picture
    assert "<svg" in svg.read_text()
    again = ordercast("replay", file)
    assert again.status == 1
    assert sentence in again.out


def test_what_is_broken_is_told_to_programs(ordercast: Command) -> None:
    done = ordercast(A1, "--json")
    told = json.loads(done.out)["counterexample"]
    assert done.status == 1
    assert "is acknowledged at E2" in told["sentence"]
    assert told["schedule"][0] == "E1 sends x{2,3}"
    assert told["after_the_schedule"] is False


def test_a_reading_of_the_printed_rules_and_what_is_owed_can_be_chosen(ordercast: Command) -> None:
    line = "check spo --rules paper --script 'a{2,3}; b{3};' --losses 0 --liveness-goal accepted --jobs 1"
    assert "b{3} of E2 is never accepted at E3" in ordercast(line).out
    assert ordercast(line + " --reading condition_2=none").status == 0


def test_what_goes_wrong_where_nothing_is_lost_is_drawn_as_replay_draws_it(ordercast: Command, tmp_path: Path) -> None:
    """A2: the schedule is empty, and a message alone is never acknowledged."""
    file, svg = tmp_path / "a2.toml", tmp_path / "a2.svg"
    line = "check spo --rules paper --script 'a{2}; –' --nodes 2 --losses 0 --liveness-goal acknowledged --jobs 1"
    done = ordercast(line, "--write", file, "--svg", svg)
    assert done.status == 1
    told = [text.strip() for text in done.out.splitlines()]
    assert "no unit is lost at all, and yet:" in told
    assert "=> a{2} of E1 is never acknowledged at E1:" in told
    assert "E1: keeps its number 0, not known to be accepted by {E2};" in told  # a line of its own
    assert "continuations" not in done.out  # none ended well
    assert any(text.startswith("1  ■ a→{2}") for text in told)
    ordercast("replay", file, "--svg", tmp_path / "again.svg")
    assert svg.read_text() == (tmp_path / "again.svg").read_text()


def test_what_a_node_invents_is_told_in_words(ordercast: Command) -> None:
    """S3: whoever misses its own broadcast is given an empty one."""
    done = ordercast("check sequencer --rules paper --script '; a' --reading first_id=1 --jobs 1 --no-draw")
    assert "=> E2 outputs nothing{1,2,3} as message 0 of E2, which no node submitted" in done.out


def test_all_bounds_are_told_and_what_is_printed_can_be_asked_again(ordercast: Command) -> None:
    done = ordercast("check st --nodes 2 --script 'a;' --losses 0 --patient --drained --jobs 1 --max-states 100")
    first, bounds, *_ = done.out.splitlines()
    assert bounds == "bounds: losses 0, duplicates 0, firings 0, crashes 0, patient timers, drained nodes"
    assert first == "st, sound rules, channel one: a{1,2}; –"
    again = ordercast("check st --losses 0 --nodes 2 --jobs 1 --json --script", first.partition(": ")[2])
    assert json.loads(again.out)["scripts"] == ["a{1,2}", ""]


def test_who_finds_nothing_is_told_when_nothing_was_owed(ordercast: Command) -> None:
    """The printed SPO loses a message for good, and that breaks a promise only if one was made."""
    line = "check spo --rules paper --jobs 1 --no-draw"
    done = ordercast(line)
    assert done.status == 0
    assert "Liveness was not checked" in done.out
    assert "--liveness-goal accepted" in done.out
    assert json.loads(ordercast(line, "--json").out)["liveness_goal"] == "nothing"
    done = ordercast(f"{line} --liveness-goal accepted")
    assert done.status == 1
    assert "a{2,3} of E1 is never accepted at E2" in done.out
    assert "most printed rules wait forever" in ordercast(line).out
    done = ordercast("check spo --nodes 2 --jobs 1 --liveness-goal nothing")
    assert "so messages need not even arrive. Set one with --liveness-goal" in done.out
    sound = ordercast("check spo --nodes 2 --jobs 1")
    assert sound.status == 0
    assert "Liveness was not checked" not in sound.out
    assert json.loads(ordercast("check spo --nodes 2 --jobs 1 --json").out)["liveness_goal"] == "acknowledged"


def test_a_search_that_is_cut_says_so(ordercast: Command) -> None:
    done = ordercast("check st --script 'g{1,3} p{1,3}; z{1,3};' --max-states 500 --jobs 1")
    assert done.status == 0
    assert "(cut off)" in done.out
    assert "cut off: no promise is broken so far; more than --max-states were found: raise it to search on" in done.out


def test_a_search_stops_at_the_end_of_the_length_at_which_it_has_found_too_many(ordercast: Command) -> None:
    """As the help says: of each length of schedules all states are found, or none."""

    def found(limit: int) -> int:
        line = "check st --script 'g{1,3} p{1,3}; z{1,3};' --jobs 1 --json --max-states"
        done = json.loads(ordercast(line, limit).out)
        assert not done["exhausted"]
        return int(done["states"])

    first = found(100)
    assert first > 100
    assert found(first - 1) == first
    assert found(first) > first


def test_a_timer_that_is_never_set_is_told(ordercast: Command) -> None:
    done = ordercast("check spo --nodes 2 --script a --firings 1 --fires nothing --fires status --jobs 1")
    assert done.status == 0
    assert "--fires nothing: no timer of this name was set in the first 2,000 states; those that were: " in done.err
    assert "--fires status:" not in done.err


def test_the_named_searches_of_a_group_with_views_are_a_table(ordercast: Command) -> None:
    done = ordercast("check spo --views --scenario leave --scenario suspicion --jobs 1")
    assert done.status == 0, done.out
    first, *rest = done.out.splitlines()
    assert first == "spo with views, channel many: three founders, E2 sends one message to all"
    rows = {row.split()[0]: row.split()[1:] for row in rest if row.startswith("  ") and row.strip()}
    assert rows["scenario"] == ["states", "transitions", "depth", "seconds", "extent"]
    assert list(rows)[1:] == ["leave", "suspicion"]
    assert rows["leave"][-1] == rows["suspicion"][-1] == "exhaustive"
    assert int(rows["leave"][0].replace(",", "")) > 1_000
    assert "no promise is broken by any schedule within these bounds" in done.out


def test_the_named_searches_are_told_to_programs(ordercast: Command) -> None:
    line = "check sequencer --views --scenario leave --max-states 200 --jobs 1"
    told = json.loads(ordercast(line, "--json").out)
    [row] = told["scenarios"]
    assert (told["protocol"], row["scenario"], row["leaves"], row["joins"]) == ("sequencer", "leave", 1, 0)
    assert (row["group"]["views"], row["group"]["sequencer"]["resilience"], row["channel"]) == (True, 1, "many")
    assert (row["exhausted"], row["counterexample"]) == (False, None)
    done = ordercast(line, "--resilience", 2, "--channel", "any")
    assert done.status == 0
    assert done.out.startswith("sequencer with views, channel any, resilience 2: three founders")
    assert "cut off: no promise is broken so far; raise --max-states to search on" in done.out


def test_the_named_searches_of_members_with_logs_are_a_table(ordercast: Command) -> None:
    done = ordercast("check to --views --logs --scenario restart-all --scenario restart-all-damage --jobs 1")
    assert done.status == 0, done.err
    first, *lines = done.out.splitlines()
    assert first == "to with logs, channel one: two founders, E2 sends one message to all"
    rows = {row[0]: row[1:] for line in lines if len(row := line.split()) == 6}
    assert [rows[name][-1] for name in ("restart-all", "restart-all-damage")] == ["exhaustive"] * 2
    assert int(rows["restart-all"][0].replace(",", "")) < int(rows["restart-all-damage"][0].replace(",", ""))


def test_members_with_logs_are_searched_within_bounds(ordercast: Command) -> None:
    line = "check to --views --logs --nodes 2 --script ;a --losses 0 --returns E2 --returns E3 --damages 1 --jobs 1"
    done = ordercast(line)
    assert done.status == 0, done.err
    first, second, *_ = done.out.splitlines()
    assert first == "to, logs, channel one: –; a{1,2,3,4}; –; –"
    assert "damages 1" in second
    assert "E2 may crash and return, E3 may crash and return" in second
    told = json.loads(ordercast(line + " --json").out)
    assert (told["logs"], told["damages"], told["returns"]) == (True, 1, ["E2", "E3"])
    assert told["exhausted"]


def test_a_group_with_views_is_searched_within_bounds(ordercast: Command) -> None:
    done = ordercast("check to --views --nodes 2 --script '; a' --losses 0 --leaves 1 --jobs 1")
    assert done.status == 0, done.out
    first, *rest = done.out.splitlines()
    assert first == "to, views, channel one: –; a{1,2}"
    bounds = "bounds: losses 0, duplicates 0, firings 0, crashes 0, joins 0, leaves 1, suspicions 0"
    assert " ".join(rest).startswith(bounds)
    assert "(exhaustive)" in done.out
    told = json.loads(
        ordercast(
            "check spo --views --nodes 2 --losses 0 --joins 1 --suspicions 1 --firings 1 --fires view.round --json "
            "--max-states 50 --jobs 1"
        ).out
    )
    assert (told["joins"], told["suspicions"], told["fires"], told["group"]["nodes"]) == (1, 1, ["view.round"], 3)
    assert told["scripts"] == ["a{2}", "b{1,2,3}", ""]


def test_what_views_break_is_shown_and_written(
    ordercast: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who leaves is never let go."""
    monkeypatch.setattr("ordercast.protocols.membership.coordinator.Coordinator.leaves", lambda *_: None)
    file = tmp_path / "stuck.toml"
    done = ordercast("check spo --views --scenario leave --scenario crash --jobs 1 --no-draw --write", file)
    assert done.status == 1
    assert [row.split()[-1] for row in done.out.splitlines() if row.startswith("  leave")] == ["broken"]
    assert "  crash" not in done.out
    assert "the group never becomes quiescent" in done.out
    assert "E2 leaves" in done.out
    again = ordercast("replay", file)
    assert again.status == 1
    assert "the group never becomes quiescent" in again.out


REFUSED = [
    ("check spo --scenario leave", "--scenario needs --views"),
    ("check spo --views --scenario leave --losses 1", "--scenario has bounds of its own; leave out --script, --nodes"),
    (
        "check spo --views --scenario xyz",
        "--scenario is one of suspicion, loss, crash, several, give-up, takeover, two-coordinators, leave",
    ),
    ("check to --logs", "--logs needs --views"),
    ("check to --views --damages 1", "--damages needs --logs"),
    ("check po --views --logs --nodes 2", "po has no logs, only "),
    ("check po --views --logs", "po has no logs, only "),
    ("check to --views --logs --scenario leave", "--scenario with --logs is one of restart, restart-all, "),
    ("check xyz --views", "unknown protocol 'xyz'; choose one of: "),
    ("check spo --views --rules paper", "--views needs sound rules, not the paper rules"),
    ("check spo --views --rules paper --leaves 1", "--views needs sound rules, not the paper rules"),
    ("check spo --leaves 1", "--joins, --returns and --leaves need --views"),
    ("check spo --suspicions 1", "--suspicions needs --views, or the sound sequencer, which has views of its own"),
    ("check spo --views --at-once 2", "--at-once has no effect without --suspicions"),
    (
        "check spo --give-ups 1",
        "`give_ups` needs a group with views (--views), or --liveness-goal nothing: others wait for",
    ),
    ("check xyz", "unknown protocol 'xyz'; choose one of: "),
    ("check to --rules paper", "to has no paper rules; choose one of: prito, sequencer, spo, st"),
    ("check spo --script '; –;'", "--script: no node sends anything; give at least one message"),
    ("check spo --nodes 1", "--nodes must be 2 to 16, not 1:"),
    ("check spo --nodes 17", "--nodes must be 2 to 16, not 17:"),
    ("check spo --nodes 2 --script 'a;b;c'", "--script has 3 lines, one for each node, but there are 2 nodes"),
    ("check spo --script 'a{4}'", "'a{4}' goes to a node that is not one of E1 to E3"),
    ("check spo --script 'a{'", "'a{' is not an item of a script; write x{2,3}"),
    ("check prito --script 'a[256]'", "'a[256]' has a priority above 255"),
    ("check to --script 'a{1,2}'", "to broadcasts every message: write 'a' without destinations"),
    ("check spo --window 0", "the window must be at least 1"),
    (
        "check spo --crashes 1",
        "the sound spo gives the group up when a node crashes; use --crashes with --views, with the sound sequencer",
    ),
    (
        "check sequencer --rules paper --liveness-goal accepted --crashes 1",
        "the paper sequencer gives the group up when a node",
    ),
    ("check st --duplicates 1", "set --losses or --duplicates to 0"),
    ("check st --channel many", "st needs --channel one"),
    (
        "check spo --liveness-goal silence",
        "--liveness-goal is one of nothing, accepted, preacknowledged, acknowledged, not 'silence'",
    ),
    ("check spo --rules paper --reading first=1", "--reading: 'first=1' is not a reading"),
    ("check spo --jobs 2 --master local[2]", "give only one"),
    ("check sequencer --resilience 3", "the resilience is at most 2, all nodes besides the sequencer, not 3"),
]


@pytest.mark.parametrize(("line", "words"), REFUSED)
def test_a_bad_value_is_refused_with_what_would_be_right(ordercast: Command, line: str, words: str) -> None:
    done = ordercast(line)
    assert (done.status, done.out) == (2, "")
    assert words in done.sentence


@pytest.mark.parametrize("option", ["losses", "duplicates", "firings", "crashes"])
def test_a_bound_below_nothing_is_refused(ordercast: Command, option: str) -> None:
    done = ordercast(f"check spo --{option} -1")
    assert (done.status, done.out) == (2, "")
    assert f"--{option}" in done.err


def test_a_member_that_returns_under_its_name(ordercast: Command) -> None:
    done = ordercast("check spo --views --nodes 2 --script a --returns E2 --losses 0 --jobs 1")
    assert done.status == 0
    assert "E2 may crash and return" in done.out
    told = ordercast("check spo --returns E2")
    assert told.status == 2
    assert told.sentence == "--joins, --returns and --leaves need --views"
    wrong = ordercast("check spo --views --returns E4")
    assert wrong.status == 2
    assert wrong.sentence == "`returns` names founders, and those that return before, each once, such as 'E3', not 'E4'"


def test_a_place_that_cannot_be_written_is_refused(ordercast: Command, tmp_path: Path) -> None:
    done = ordercast(A1, "--json", "--write", tmp_path / "nowhere" / "a1.toml")
    assert done.status == 2
    assert "choose another path" in done.sentence
    done = ordercast(A1, "--json", "--write", "/dev/full")
    assert done.status == 2
    assert "No space left" in done.sentence


def test_what_changes_nothing_is_refused_or_told(ordercast: Command, tmp_path: Path) -> None:
    line = "check spo --nodes 2 --jobs 1 --script"
    refused = ordercast(f"{line} a[5] --history 2 --log-limit 5 --infer-losses")
    assert refused.status == 2
    assert refused.sentence == (
        "--log-limit has no effect for spo, only for st; --history has no effect for spo, only for sequencer; "
        "a priority in --script has no effect for spo, only for prio and prito: omit them"
    )
    refused = ordercast(f"{line} a --reading asks_once=true")
    assert refused.status == 2
    assert refused.sentence == "--reading has no effect for --rules sound, only for --rules paper: omit it"
    told = ordercast(f"{line} a --svg {tmp_path}/it.svg")
    assert told.status == 0
    assert told.sentence == "no counterexample was found, so --svg, --write, --view and --page have no effect"
    assert ordercast(f"{line} a").err == ""
