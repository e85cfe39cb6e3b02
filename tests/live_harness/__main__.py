"""Random live groups in virtual time; those that fail are shrunk and written as files.

python -m tests.live_harness --seconds 60
python -m tests.live_harness --first 1000 --runs 500
python -m tests.live_harness tests/live_harness/seeds/*.toml     # again what was stored
"""

import argparse
import gc
import logging
import sys
import time
from collections import Counter
from pathlib import Path

from tests.live_harness.draw import ORDERS, draw
from tests.live_harness.plan import Plan, from_toml, to_toml
from tests.live_harness.run import Result, run_plan
from tests.live_harness.shrink import shrunk


def main() -> int:
    """0: nothing failed; 1: something did."""
    options = _options()
    if options.files:
        return _again(options.files)
    begun, cpu = time.monotonic(), time.process_time()
    totals: Counter[str] = Counter()
    gc.freeze()  # a run leaves cycles, and each look for them would go through all modules
    gc.set_threshold(20_000)
    failed, number = 0, options.first
    while number < options.first + options.runs and time.monotonic() - begun < options.seconds:
        plan = draw(number, tuple(options.orders))
        result = run_plan(plan)
        totals.update(_totals(result))
        if result.failures:
            failed += 1
            _report(plan, result, options.out, shrink=options.shrink)
        number += 1
    runs, used = number - options.first, time.process_time() - cpu
    sys.stdout.write(
        f"{runs} runs ({options.first} to {number - 1}), {failed} failed; {totals['deliveries']:,} deliveries, "
        f"{totals['views']:,} views, {totals['datagrams']:,} datagrams, {totals['seconds']:,} s of virtual time; "
        f"settled: {totals['settled']}; {runs / used * 60:,.0f} runs a minute of processor time\n"
    )
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.live_harness")
    parser.add_argument("files", nargs="*", type=Path, help="plans to carry out again")
    parser.add_argument("--first", type=int, default=0, help="the number of the first plan")
    parser.add_argument("--runs", type=int, default=1 << 40)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--orders", nargs="+", default=list(ORDERS))
    parser.add_argument("--out", type=Path, default=Path("soak/live"), help="where plans that fail are written")
    parser.add_argument("--no-shrink", dest="shrink", action="store_false")
    return parser.parse_args()


def _totals(result: Result) -> dict[str, int]:
    return {
        "deliveries": result.deliveries,
        "views": result.views,
        "datagrams": result.datagrams,
        "seconds": int(result.virtual),
        "settled": int(result.settled),
    }


def _kind_of(plan: Plan) -> str | None:
    failures = run_plan(plan).failures
    return failures[0].kind if failures else None


def _report(plan: Plan, result: Result, out: Path, *, shrink: bool) -> None:
    kind, sentence = result.failures[0]
    sys.stdout.write(f"{plan.seed} ({plan.setup.order}): {kind}: {sentence}\n")
    smallest = shrunk(plan, _kind_of) if shrink else plan
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{plan.setup.order}-{plan.seed}.toml"
    path.write_text(to_toml(smallest, f"{kind}: {sentence}"), encoding="utf-8")
    sys.stdout.write(f"  {len(smallest.steps)} of {len(plan.steps)} steps are left: {path}\n")
    sys.stdout.flush()


def _again(files: list[Path]) -> int:
    failed = 0
    for path in files:
        result = run_plan(from_toml(path))
        failed += bool(result.failures)
        told = "; ".join(f"{kind}: {sentence}" for kind, sentence in result.failures) or "holds"
        sys.stdout.write(f"{path}: {told}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)  # not in main(), which tests call in a process that others log in
    sys.exit(main())
