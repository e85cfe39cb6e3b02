"""How fast every schedule of a small group is searched, and what leaving out equivalent ones saves.

CPU time of this one process, with and without the reduction, of searches that end. Nothing here is a test.

    make bench
"""

import platform
import time
from typing import Any

from command_line import parser_for

from ordercast.explorer.explore import Search, SearchReport
from ordercast.explorer.scenario import Scenario, format_script
from ordercast.explorer.scenarios import scenario

SEARCHES: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("spo", ("a{1,2}", "b{3}", ""), {"losses": 1, "firings": 3}),
    ("po", ("a b", "c", ""), {"losses": 1}),
    ("st", ("g{1,3} p{1,3}", "z{1,3}", ""), {"losses": 1}),
    ("to", ("a", "b", "c"), {"losses": 1}),
    ("prito", ("p1", "h5"), {"losses": 1, "firings": 2}),
    ("prio", ("p5", "h5"), {"losses": 1, "firings": 2}),
    ("sequencer", ("", "a", "b"), {"losses": 1, "duplicates": 1, "firings": 1}),
]


def searched(asked: Scenario, *, reduced: bool) -> tuple[SearchReport, float]:
    """What was seen, and the CPU time that it took."""
    search = Search(asked, reduced=reduced)
    start = time.process_time()
    report = search.run()
    assert report.exhausted, str(report)
    return report, time.process_time() - start


def main() -> None:
    """Prints the table."""
    parser_for(__doc__, "less than a minute").parse_args()
    print(f"Python {platform.python_version()}, {platform.machine()}, one process\n")
    print(
        "protocol   script, bounds                              states   CPU s  states/s   reduced  CPU s  fewer  edges"
    )
    for protocol, lines, bounds in SEARCHES:
        asked = scenario(protocol, lines, **bounds)
        every, long = searched(asked, reduced=False)
        some, short = searched(asked, reduced=True)
        scripts = "; ".join(format_script(script) or "–" for script in asked.scripts)
        what = f"{scripts}, " + ", ".join(f"{value} {name}" for name, value in bounds.items())
        print(f"{protocol:10} {what}")
        print(
            f"{'':50} {every.states:>9,} {long:>7.1f} {every.states / long:>9,.0f} {some.states:>9,} {short:>6.1f} "
            f"{every.states / some.states:>5.1f}x {every.edges / some.edges:>5.1f}x"
        )


if __name__ == "__main__":
    main()
