"""The answers to the page's requests, as JSON values or bytes; what is asked arrives as words of an address."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ordercast.model.errors import ConfigError
from ordercast.viewer.encoding import encoded_events, encoded_tile
from ordercast.viewer.event_arrays import KINDS, NONE
from ordercast.viewer.questions import MOST_MARKS, Wanted, histogram_edges, message_rows, next_event
from ordercast.viewer.tiles import CLASS_OF_KIND, CLASSES, tile_of
from ordercast.viewer.traces import Traces, ViewedRun

Query = Mapping[str, str]
_REACH = 200
MOST_IN_RANGE = 50_000
"""Events of a range that are sent at once."""


def run_answer(run: ViewedRun) -> dict[str, Any]:
    """What the page knows of a run from the beginning."""
    return {**run.described(), "kinds": KINDS, "classes": CLASSES, "class_of_kind": CLASS_OF_KIND}


def summary_answer(run: ViewedRun) -> dict[str, Any]:
    """Marks, totals and latencies of the whole run; empty if it is too long."""
    summary = run.summary
    if not summary.possible:
        return {"possible": False, "marks": [], "unmarked": 0, "latencies": {}, "edges": [], "totals": {}, "gaps": []}
    marks, texts, origin = summary.marks, run.events.texts.all, run.events.origin
    shown = min(len(marks), MOST_MARKS)

    def text(code: int) -> str | None:
        return texts[code] if code != NONE else None

    rows = [
        {
            "time": int(marks.time[at]) - origin,
            "node": int(marks.node[at]),
            "kind": KINDS[marks.kind[at]],
            "source": int(marks.source[at]) if marks.source[at] >= 0 else None,
            "seq": int(marks.seq[at]) if marks.seq[at] >= 0 else None,
            "detail": text(int(marks.detail[at])),
            "members": text(int(marks.destinations[at])),
        }
        for at in range(shown)
    ]
    return {
        "possible": True,
        "marks": rows,
        "unmarked": len(marks) - shown,
        "latencies": summary.latencies(),
        "edges": histogram_edges(),
        "totals": summary.totals(),
        "gaps": [[begin - origin, end - origin] for begin, end in summary.gaps],
        **summary.over_time(),
    }


def _run(traces: Traces, query: Query) -> ViewedRun:
    return traces.run(query.get("run", ""))


def _grown(traces: Traces, query: Query) -> dict[str, Any]:
    run, since = traces.refresh(query.get("run", ""))
    origin, last = run.events.origin, run.events.times[1]
    return {
        "rows": run.events.rows,
        "duration": max(0, last - origin),
        "names": run.names,
        "ended": run.ended,
        "since": None if since is None else since - origin,
    }


def _tile(traces: Traces, query: Query) -> bytes:
    run = _run(traces, query)
    exponent, index = _number(query, "exponent", 0, 62), _number(query, "index", 0, 1 << 62)
    tile = tile_of(run.events, run.nodes, exponent, index, run.margin)
    if query.get("sends") == "1" and tile.events is not None and run.summary.possible:
        tile = replace(tile, events=run.summary.with_sends(tile.events))
    return encoded_tile(tile, run.events.texts, run.events.origin)


def _events(traces: Traces, query: Query) -> bytes:
    """All events of a range; `cut`: how many of them are not sent."""
    run = _run(traces, query)
    origin, lowest = run.events.origin, -(1 << 62)
    begin, end = (origin + _number(query, name, lowest) for name in ("begin", "end"))
    found, left = run.events.first_between(begin, end, MOST_IN_RANGE)
    return encoded_events(found, run.events.texts, origin, {"cut": left})


def _message(traces: Traces, query: Query) -> bytes:
    run = _run(traces, query)
    rows = message_rows(run.events, _number(query, "source"), _number(query, "seq"))
    return encoded_events(rows, run.events.texts, run.events.origin)


def _order(traces: Traces, query: Query) -> dict[str, Any]:
    run = _run(traces, query)
    if not run.summary.possible:
        return {"possible": False, "orders": []}
    source, seq = _number(query, "source"), _number(query, "seq")
    reach = _number(query, "reach", 0, _REACH)
    orders = [run.summary.around(node, source, seq, reach) for node in range(run.nodes)]
    return {"possible": True, "orders": orders}


def _find(traces: Traces, query: Query) -> bytes:
    run = _run(traces, query)
    kind = query.get("kind") or None
    if kind is not None and kind not in KINDS:
        raise ConfigError(f"there is no kind of event {kind!r}; kinds are: {', '.join(KINDS[:-1])}")
    node, source, seq = (_number(query, name) if query.get(name) else None for name in ("node", "source", "seq"))
    origin = run.events.origin
    after = origin + _number(query, "after", -(1 << 62), 1 << 62)
    found = next_event(run.events, Wanted(kind, node, source, seq), after, backwards=query.get("backwards") == "1")
    return encoded_events(found, run.events.texts, origin)


ANSWERS: dict[str, Callable[[Traces, Query], dict[str, Any] | bytes]] = {
    "run": lambda traces, query: run_answer(_run(traces, query)),
    "summary": lambda traces, query: summary_answer(_run(traces, query)),
    "grown": _grown,
    "tile": _tile,
    "events": _events,
    "message": _message,
    "order": _order,
    "find": _find,
}
"""By the name of the request."""


def _number(query: Query, name: str, least: int = 0, below: int = 1 << 62) -> int:
    word = query.get(name, "")
    try:
        number = int(word)
    except ValueError:
        number = least - 1
    if not least <= number < below:
        raise ConfigError(f"{name}={word!r} is no number from {least} to {below - 1}")
    return number
