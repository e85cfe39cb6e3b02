"""What the page answers: searches, filters, why a message waited, charts, witnesses, steps, words."""

import json
import re
from pathlib import Path

import pytest

from ordercast.cli.shared.stories import page_of_story
from ordercast.model.config import GroupConfig
from ordercast.model.runs import Pattern, RunConfig, Workload
from ordercast.simulation import simulate
from ordercast.trace.schema import EventRow
from ordercast.viewer.export import Range, exported
from ordercast.viewer.glossary import WORDS
from ordercast.viewer.traces import Traces
from tests.viewer.browser import Page
from tests.viewer.pictures import colour, colours_at, page_of, pixel, place, spot
from tests.viewer.traces import HOSTILE, many, one_loss, row, write

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ALL = (0, 1, 2)


def search(page: Page, text: str) -> None:
    """As it is typed."""
    page.evaluate("byId('query').value = ''; byId('query').focus()")
    page.type(text)
    page.key("Enter")


def test_a_search_finds_senders_numbers_levels_and_times(page: Page, tmp_path: Path) -> None:
    second = [
        row(1, 20, 2_000, "send", 1, 0, destinations=ALL),
        *(row(node, 21, 2_100 + node, kind, 1, 0) for node in ALL for kind in ("accept", "preack", "ack", "deliver")),
    ]
    page.show(page_of(tmp_path, write(tmp_path / "t", [*one_loss(), *second])))
    cursor = "(({ kind, node, source, time }) => [app.first.run.kinds[kind], node, source, time])(app.first.cursor)"
    for words, kind, node, source, time in (
        ("E2#0", "send", 1, 1, 2000),
        ("E2#0 ack E3", "ack", 2, 1, 2102),
        ("E1#0 accepted E3", "accept", 2, 0, 500),
        ("lost", "lose", 2, 0, 200),
        ("from E2 delivered E1", "deliver", 0, 1, 2100),
        ("E1#0 pre-acknowledged E2", "preack", 1, 0, 701),
    ):
        page.evaluate("app.first.cursor = null; app.first.whole()")
        search(page, words)
        page.until("Boolean(app.first.cursor)")
        assert page.evaluate(cursor) == [kind, node, source, time], words
        page.until(f"byId('panel').innerText.includes('Message E{source + 1}#0')")
    search(page, "1.5us")
    page.until("Math.abs((app.first.from + app.first.to) / 2 - 1500) < 1")
    search(page, '"a')
    page.until("byId('status').innerText.includes('a trace has no payloads, only sizes')")
    search(page, "E9#1")
    page.until("byId('status').innerText.includes('“E9#1” is no message, member, event or time of this run')")
    search(page, "E1#7")
    page.until("byId('status').innerText.includes('nothing in this run matches “E1#7”')")
    assert page.taken_errors() == []


def test_filters_hide_kinds_members_and_messages_to_others(page: Page, tmp_path: Path) -> None:
    private = [row(1, 20, 900, "send", 1, 0, destinations=(1,)), row(1, 21, 901, "deliver", 1, 0)]
    page.show(page_of(tmp_path, write(tmp_path / "t", [*one_loss(), *private])))

    def switch(label: str, nth: int = 0) -> str:
        page.evaluate(
            "document.querySelector('#filters details').open = true;"
            "[...document.querySelectorAll('#filters label')]"
            f".filter((each) => each.innerText.trim() === '{label}')[{nth}].click()"
        )
        page.settle()
        found = re.search(r"(\d+) drawn one by one(?: · (\d+) hidden)?", page.text("status"))
        assert found is not None
        return f"{found[1]}/{found[2] or 0}"

    def names() -> list[str]:
        shown = page.evaluate("app.first.painter.lanes.map((node) => app.first.run.names[node])")
        return [str(name) for name in shown]

    assert page.text("status").endswith("22 events here: 22 drawn one by one")
    assert switch("deliveries") == "18/4"
    assert spot(page, 802, 2)
    assert switch("deliveries") == "22/0"
    assert switch("E3") == "14/8"
    assert names() == ["E1", "E2"]
    assert switch("E3") == "22/0"
    # The second of this name: only messages to any of these are shown.
    assert switch("E1", 1) == "22/0", "all messages have another destination, too"
    assert switch("E3", 1) == "22/0"
    assert switch("E2", 1) == "2/20", "stops are of no message"
    assert switch("E1", 1) == "20/2", "what is for E2 alone is hidden"
    assert names() == ["E1", "E2", "E3"]


def why(page: Page) -> list[str]:
    """What the message that is shown waited for."""
    found = page.evaluate(
        "[...document.querySelectorAll('#panel h3')]"
        ".find((each) => each.innerText === 'What it waited for').nextSibling.innerText"
    )
    return str(found).splitlines()


def asked(page: Page, message: str) -> list[str]:
    page.evaluate(f"app.guarded(() => app.search('{message}'))")
    page.until(f"byId('panel').innerText.includes('Message {message}')")
    return why(page)


def accepted(source: int, seq: int, time: int, nodes: tuple[int, ...] = ALL) -> list[EventRow]:
    """All that becomes of a message that nothing happens to."""
    return [
        row(node, 1_000 + time + at, time + 100 * at, kind, source, seq)
        for at, kind in enumerate(("receive", "accept", "preack", "ack", "deliver"))
        for node in nodes
    ]


def test_what_a_message_waited_for_is_told_with_its_cause(page: Page, tmp_path: Path) -> None:
    sent = [row(0, seq, 1_000 * seq, "send", 0, seq, destinations=ALL) for seq in range(6)]
    rows: list[EventRow] = [
        *sent[:1],
        *accepted(0, 0, 100),
        # 1: its window was full until #0 was known to be with all.
        row(0, 1, 1_000, "hear"),
        row(0, 2, 1_000, "preack", 0, 0),
        sent[1],
        *accepted(0, 1, 1_100),
        # 2: E1 was frozen.
        row(0, 3, 1_700, "stop", detail="told"),
        row(0, 4, 2_000, "resume", detail="0 asked, 0 inserted"),
        sent[2],
        *accepted(0, 2, 2_100),
        # 3: the view changed.
        row(0, 5, 2_700, "block", detail="E3"),
        row(0, 6, 3_000, "view", None, 4, destinations=(0, 1)),
        sent[3],
        *accepted(0, 3, 3_100, (0, 1)),
        # 4: E3 has a gap before it, and is silent afterwards.
        sent[4],
        *accepted(0, 4, 4_100, (0, 1))[:4],
        row(2, 9, 4_100, "receive", 0, 4),
        row(2, 10, 4_900, "accept", 0, 4),
        # 5: nothing.
        sent[5],
        *accepted(0, 5, 5_100),
    ]
    page.show(page_of(tmp_path, write(tmp_path / "t", sorted(rows, key=lambda each: each[2]))))
    assert asked(page, "E1#0")[0] != "the window of E1"
    assert asked(page, "E1#1")[0] == (
        "the window of E1: it could be sent only when E1 knew that E1#0 was with all its destinations"
    )
    assert asked(page, "E1#2")[0] == (
        "E1 was frozen, and numbers nothing meanwhile: it could be sent only when E1 went on"
    )
    assert asked(page, "E1#3")[0] == (
        "E1 numbers nothing while the view changes: it could be sent only when view 4 began"
    )
    gap = asked(page, "E1#4")
    assert "800 ns: E3 had it, but could not accept it before what E1 sent earlier (a gap), or before a recovery" in gap
    assert (
        "700 ns: all waited for E3, the last to have it accepted; only then could it be pre-acknowledged everywhere"
        in gap
    )
    assert any("acknowledged everywhere" in each and "never" in each and "E3" in each for each in gap)
    assert not any("window" in each or "numbers nothing" in each for each in asked(page, "E1#5"))


@pytest.mark.parametrize(("pattern", "held"), [(Pattern.EVERYBODY, True), (Pattern.TALKER, False)])
def test_windows_are_named_where_they_were_full_and_nowhere_else(
    page: Page, tmp_path: Path, pattern: Pattern, held: bool
) -> None:
    """All is submitted at once, with a window of three; or one message long after the other."""
    group = GroupConfig(nodes=3, window=3)
    simulate(
        RunConfig(protocol="spo", group=group, workload=Workload(messages=12, pattern=pattern, gap=10**7)),
        tmp_path / "t",
    )
    [name] = Traces([tmp_path / "t"]).runs
    page.show(page_of(tmp_path, tmp_path / "t", runs=(name,)))
    found = page.evaluate(
        "(async () => { const found = []; for (let seq = 0; seq < 12; seq++)"
        " found.push(await heldBack(app.first, 0, seq, await app.source.message(app.first.run.key, 0, seq)));"
        "return found })()"
    )
    assert found[:3] == [[], [], []]
    assert [bool(each) for each in found[3:]] == [held] * 9
    for seq, sentences in enumerate(found):
        for sentence in sentences:
            number = re.search(r"the window of E1: .* knew that E1#(\d+) was with all its destinations", sentence)
            assert number is not None
            assert seq - int(number[1]) == 3, "the one that was let go by the oldest of the window"


def test_charts_show_latencies_by_level_and_logs_and_losses_over_time(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", one_loss())))
    bars = page.evaluate(
        "[...document.querySelectorAll('#panel svg rect title')].map((each) => each.textContent)"
        ".filter((each) => each.includes(' from '))"
    )
    assert sum(int(each.split(": ")[1].split()[0]) for each in bars if each.startswith("delivered")) == 3
    assert "accepted: 1 from 0 ns to 100 ns" in bars, "at E1 at once"
    assert "1 lost from" in " ".join(bars)
    lines = page.evaluate("[...document.querySelectorAll('#panel svg polyline title')].map((each) => each.textContent)")
    assert lines == ["E1: at most 1", "E2: at most 1", "E3: at most 1"]
    assert re.search(r"delivered\s+701 ns\s+702 ns\s+702 ns\s+3", page.text())


def test_a_witness_has_its_cycle_drawn_and_its_logs_beside_each_other(page: Page, tmp_path: Path) -> None:
    rows = [row(node, 0, 10 * node, "send", node, 0, destinations=ALL) for node in ALL]
    orders = {0: (0, 1, 2), 1: (1, 2, 0), 2: (2, 0, 1)}
    rows += [
        row(node, 1 + place, 100 + 10 * place, "deliver", source, 0)
        for node, order in orders.items()
        for place, source in enumerate(order)
    ]
    witness = {
        "breaks": "no_cycle",
        "rule": "No cycles.",
        "run": "r",
        "sentence": f"{HOSTILE}: 1.0 before 2.0 at E1",
        "messages": [[0, 0], [1, 0], [2, 0]],
        "nodes": [0, 1, 2],
        "places": [],
    }
    for dark in (False, True):
        page.show(page_of(tmp_path, write(tmp_path / f"t{dark}", rows), witnesses=[witness]), dark=dark)
        page.until("byId('panel').innerText.includes('Violated: no_cycle')")
        label = page.evaluate("document.querySelector('#panel svg.histogram').getAttribute('aria-label')")
        assert label == "E1 delivered E1#0 before E2#0, E2 delivered E2#0 before E3#0, E3 delivered E3#0 before E1#0"
        assert page.evaluate("document.querySelectorAll('#panel svg.histogram path').length") == 6, "arrows and heads"
        logs = page.evaluate("[...document.querySelectorAll('.logs')][0].innerText")
        assert logs.split() == [
            "E1",
            "E1#0",
            "E2#0",
            "E3#0",
            "E2",
            "E2#0",
            "E3#0",
            "E1#0",
            "E3",
            "E3#0",
            "E1#0",
            "E2#0",
        ]
        assert f"{HOSTILE}: E1#0 before E2#0 at E1" in page.text()
        x, y = spot(page, 110, 1)
        assert "chosen" in colours_at(page, x, y), "the messages of the witness are marked in the picture"
    assert page.evaluate("window.hacked") is None
    assert page.taken_errors() == []


def test_differences_have_rings_in_the_run_that_has_them(page: Page, tmp_path: Path) -> None:
    other = [each for each in one_loss() if each[3] not in {"lose", "stop", "resume"}]
    traces = [write(tmp_path / "a", one_loss(), run="a"), write(tmp_path / "b", other, run="b")]
    page.show(page_of(tmp_path, *traces, runs=("a", "b")))
    page.until("byId('panel').innerText.includes('1 difference, in rings')")
    page.evaluate("app.first.paint()")
    x, y = spot(page, 200, 2)
    assert "chosen" in colours_at(page, x + 9, y), "the loss"
    x, y = spot(page, 802, 2)
    assert "chosen" not in colours_at(page, x + 9, y), "both runs deliver it"
    assert (
        page.evaluate("app.views.map((view) => Math.round(view.painter.x(500)))").count(round(spot(page, 500, 0)[0]))
        == 2
    )
    page.evaluate("app.first.zoom(0.25)")
    page.settle()
    assert page.evaluate("app.views[1].from === app.views[0].from && app.views[1].to === app.views[0].to")


def test_a_run_that_ends_earlier_than_the_one_beside_it_is_seen_to_end(page: Page, tmp_path: Path) -> None:
    traces = [write(tmp_path / "a", one_loss(), run="a"), write(tmp_path / "b", many(20, 3), run="b")]
    page.show(page_of(tmp_path, *traces, runs=("a", "b")))
    page.until(
        "byId('panel').innerText.includes('differences, in rings') && byId('status').innerText.includes('below')"
    )
    page.evaluate("app.first.paint()")
    x, y = spot(page, 1500, 1)
    assert colours_at(page, x, y) == set(), "its lanes end, too"
    assert f"above: {len(one_loss())} events here" in page.text("status")
    assert "below: 80 events here: 80 drawn one by one" in page.text("status")
    head, *_ = [line for line in page.text().splitlines() if "E1#1" in line]
    assert head.startswith("350 ns: E1#1 is delivered only here, at E1, in the lower run")
    page.evaluate("app.first.show(0, 802)")
    page.settle()
    pixels = "app.first.map.getContext('2d').getImageData(Math.round({} * app.first.map.width), 1, 1, 1).data"
    strip = f"[...{pixels}].slice(0, 3)"
    chosen = list(colour(page, "chosen"))
    assert page.evaluate(strip.format(0.3)) == chosen, "where the window is, in the time of both"
    assert page.evaluate(strip.format(0.8)) != chosen


def story(tmp_path: Path, file: str) -> str:
    page = tmp_path / "story.html"
    page.write_bytes(page_of_story(EXAMPLES / file))
    return page.as_uri()


def test_a_story_says_until_when_something_was_lacked_and_jumps_to_what_is_explained(
    page: Page, tmp_path: Path
) -> None:
    page.show(story(tmp_path, "stories/st-one-loss.toml"))
    page.key("Shift+N")
    assert "step 1 of 45" in page.text()
    for expected in (2, 3, 5):
        page.press("The next step that is explained (N)")
        assert f"step {expected} of 45" in page.text()
    page.key("Shift+P")
    assert "step 3 of 45" in page.text()
    for step in range(44):
        page.evaluate(f"app.goTo({step})")
        assert page.evaluate("byId('panel').scrollWidth - byId('panel').clientWidth") == 0, "tables stay in the panel"
        lacking = page.evaluate("[...document.querySelectorAll('#panel td.lost')].map((each) => each.innerText)")
        assert lacking == (["g"] if 11 <= step < 32 else []), f"step {step + 1}: red as long as it is lacked"
    assert "g (until step 33)" in page.text()
    page.press("The next step (n)")
    assert "step 45 of 45" in page.text()
    page.press("To the beginning")
    assert "45 steps" in page.text()
    assert page.taken_errors() == []


def test_orders_of_those_who_deliver_different_messages_need_not_contradict(page: Page, tmp_path: Path) -> None:
    """Two destinations of three for each message. At first one order has all three orders in it; then none has."""

    def told(third: tuple[int, int]) -> str:
        orders = {0: (0, 1), 1: (1, 2), 2: third}
        to = {0: (0, 2), 1: (0, 1), 2: (1, 2)}
        rows = [row(seq, 0, 10 + seq, "send", seq, 0, destinations=to[seq]) for seq in range(3)]
        rows += [row(0, 1, 20, "lose", 0, 0, detail="loss"), row(0, 1, 30, "receive", 0, 0)]
        rows += [row(0, 9, 500, "discard", 0, 0, detail="duplicate")]  # the story goes on to the last that names it
        for node, order in orders.items():
            rows += [row(node, 2, 100 + node, "accept", source, 0) for source in order]
            rows += [row(node, 3, 200 + node, "stop", detail="gap"), row(node, 4, 300 + node, "resume")]
            rows += [row(node, 5, 400 + 10 * place + node, "deliver", source, 0) for place, source in enumerate(order)]
        name = "".join(map(str, third))
        page.show(page_of(tmp_path, write(tmp_path / name, sorted(rows, key=lambda each: each[2]))))
        page.evaluate("app.guarded(() => app.tell(() => storyOfLoss(app.first, 0, 0)))")
        page.until("Boolean(app.story)")
        page.evaluate("app.goTo(app.story.steps.length - 1)")
        return page.text()

    said = told((0, 2))
    assert "Why the order came out as it did" in said
    assert "E2#0 before E3#0: E2 had them in this order" in said, "pairs of all members, not of one alone"
    said = told((2, 0))
    assert "The orders of delivery contradict each other" in said
    for pair, node in (("E1#0 before E2#0", "E1"), ("E2#0 before E3#0", "E2"), ("E3#0 before E1#0", "E3")):
        assert f"{pair}: so delivered by {node}" in said
    assert page.taken_errors() == []


def test_the_step_that_breaks_a_promise_has_no_state(page: Page, tmp_path: Path) -> None:
    page.show(story(tmp_path, "counterexamples/st-cycle.toml"))
    page.press("To the end")
    said = page.text()
    assert "The step that breaks a promise has no state behind it" in said
    assert "No machine's state changes" not in said
    for pair in ("g before y: so delivered by E1", "y before z: so delivered by E2", "z before g: so delivered by E3"):
        assert pair in said


def test_who_comes_later_was_no_destination_and_who_has_a_log_has_it_on_disk(page: Page, tmp_path: Path) -> None:
    rows = [
        *(row(node, 0, 0, "view", None, 0, destinations=(0, 1)) for node in (0, 1)),
        row(0, 1, 100, "send", 0, 0, destinations=(0, 1, 2, 3), size=8),
        *(row(node, 2, 150 + 10 * node, kind, 0, 0) for node in (0, 1) for kind in ("receive", "accept")),
        *(row(node, 3, 200 + 10 * node, "deliver", 0, 0) for node in (0, 1)),
        row(1, 4, 250, "durable", 0, 0),
        row(1, 5, 300, "crash"),
        row(2, 0, 400, "restart", 1, 1),
        row(2, 1, 400, "durable", 0, 0),
        *(row(node, 6, 500, "view", None, 1, destinations=(0, 2)) for node in (0, 2)),
        row(3, 0, 600, "timeout"),
    ]
    file = page_of(tmp_path, write(tmp_path / "t", sorted(rows, key=lambda each: each[2]), nodes=4, protocol="to"))
    page.show(file)
    page.evaluate("app.guarded(() => app.search('E1#0'))")
    page.until("byId('panel').innerText.includes('Message E1#0')")
    said = page.text()
    assert re.search(r"member\s+received\s+accepted\s+pre-ack\s+ack\s+delivered\s+on disk\s+place", said)
    assert re.search(r"E2\s+60 ns\s+60 ns\s+–\s+–\s+110 ns\s+150 ns\s", said)
    assert re.search(r"E3\s+–\s+–\s+–\s+–\s+–\s+300 ns\s", said), (
        "its log has it; the row of its start names no message"
    )
    assert not re.search(r"E4\s+–", said)
    assert "E3 never" not in said
    assert "E4 never" not in said


def test_nobody_has_what_was_for_others_or_was_discarded(page: Page, tmp_path: Path) -> None:
    page.show(story(tmp_path, "counterexamples/st-s1.toml"))
    page.evaluate("app.goTo(20)")
    assert re.search(r"E1\s+g z p\s+nothing", page.text())
    assert re.search(r"E2\s+nothing\s+nothing", page.text()), "neither message is for E2"
    assert re.search(r"E3\s+z\s+g p", page.text()), "the printed rules discard p, since it shows the gap"


def test_words_and_variables_are_explained_where_they_are_met(page: Page, tmp_path: Path) -> None:
    page.show(story(tmp_path, "stories/st-one-loss.toml"))
    page.evaluate("app.goTo(11)")
    meanings = {word.term: word.meaning for word in WORDS}
    marked = page.evaluate("[...document.querySelectorAll('#panel span.word')].map((each) => each.dataset.meaning)")
    assert f"gap: {meanings['gap']}" in marked
    assert f"reply: {meanings['reply']}" in marked
    assert len(marked) == len(set(marked)), "each once, where it comes first"
    assert page.evaluate("byId('meaning').hidden")
    page.evaluate("document.querySelector('#panel span.word').focus()")
    assert page.text("meaning") == f"gap: {meanings['gap']}"
    assert page.evaluate("document.activeElement.getAttribute('aria-describedby')") == "meaning"
    page.key("Escape")
    assert page.evaluate("byId('meaning').hidden")
    page.evaluate("app.goTo(40)")
    stamps = "[...document.querySelectorAll('#panel td.word')].find((each) => each.innerText === 'normal.stamps')"
    scrolled = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    page.evaluate(f"{stamps}.scrollIntoView()")
    page.evaluate(scrolled)  # scrolling hides what is explained, and is told with the next frame
    x, y = page.evaluate(f"(({{ left, top }}) => [left + 9, top + 9])({stamps}.getBoundingClientRect())")
    page.hover(x, y)
    page.until("!byId('meaning').hidden")
    assert page.text("meaning") == "By node: the stamp of its newest status.", "what stands beside the declaration"
    box = page.evaluate(
        "(({ left, top, right, bottom }) => [left, top, right, bottom])(byId('meaning').getBoundingClientRect())"
    )
    assert min(box) >= 0
    assert box[2] <= 1280
    assert box[3] <= 800


def test_a_frozen_span_is_explained_under_the_pointer(page: Page, tmp_path: Path) -> None:
    page.show(page_of(tmp_path, write(tmp_path / "t", one_loss())))
    x, y = place(page, 450, 2)
    page.hover(x, y - 50)
    page.until("app.first.canvas.title !== ''")
    assert page.evaluate("app.first.canvas.title") == (
        "E3 is frozen (it noticed that a message is missing) from 300 ns to 600 ns: "
        "it asked for what it lacked (1), and put 1 into their places in the order"
    )
    x, y = place(page, 200, 2)
    page.hover(x, y)
    page.until("app.first.canvas.title.includes('lose')")
    assert page.evaluate("app.first.canvas.title") == "200 ns: E3 lose E1#0 (loss)"


def test_hostile_texts_of_a_schedule_are_shown_and_do_not_run(page: Page, tmp_path: Path) -> None:
    traces = Traces([write(tmp_path / "t", one_loss())], title=HOSTILE)
    step = {
        "words": f"E1 sends {HOSTILE}",
        "note": HOSTILE,
        "effects": [HOSTILE],
        "changes": [[0, HOSTILE, HOSTILE, HOSTILE]],
    }
    told = {"title": HOSTILE, "about": HOSTILE, "broken": HOSTILE, "steps": [step], "states": [{HOSTILE: HOSTILE}] * 3}
    traces.tell("r", {"story": told, "step": 100, "labels": {"0#0": HOSTILE}})
    file = tmp_path / "page.html"
    file.write_bytes(exported(traces, ["r"], Range()).page)
    page.show(file.as_uri())
    assert page.text("title") == f"ordercast: {HOSTILE}"
    page.key("n")
    assert page.text().count(HOSTILE) >= 6
    page.evaluate("for (const each of document.querySelectorAll('.word')) { each.focus(); each.blur() }")
    search(page, f'"{HOSTILE[:5]}')
    page.until("byId('panel').innerText.includes('Message \"><img')")
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('img, script:not(#data)').length") == 1, "our own script alone"
    assert page.taken_errors() == []


def test_many_members_keep_the_page_usable_on_a_phone_and_in_the_dark(page: Page, tmp_path: Path) -> None:
    config = json.dumps({"live": {"members": [f"member-with-a-long-name-{node}" for node in range(12)]}})
    trace = write(tmp_path / "t", many(60, nodes=12), nodes=12, config=config)
    page.show(page_of(tmp_path, trace), width=400, height=800, touch=True, dark=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("app.first.painter.lane") >= 26, "lanes are never thinner; one scrolls"
    tall = page.evaluate("app.first.painter.lane * 12 + 22 > app.first.height")
    assert tall
    x, y = place(page, 3_000, 2)
    page.touch(((x, y), (x, y - 60)))
    page.settle()
    assert page.evaluate("app.first.scroll") == pytest.approx(60, abs=15)
    dark = pixel(page, 3_025, 5, down=8)
    assert max(dark) < 60, "the lane is dark"
