"""The viewer: seconds until the first picture, milliseconds of a frame while zooming, memory of the page.

Simulates a run of about a million events (8 nodes), serves it, and drives Debian's chromium. Prints what it measured.
For longer runs it is put behind itself again and again, with times, numbers and transmissions that go on:
--repeat 10 has ten million events, --repeat 100 a hundred million.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.viewer.browser import PATH, Page, browser

MOVES = 60


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=2_500, help="messages of each of the 8 nodes")
    parser.add_argument("--repeat", type=int, default=1, help="how often the run is put behind itself")
    parser.add_argument("--trace", type=Path, help="a trace that is there already, instead of a simulation")
    chosen = parser.parse_args()
    if PATH is None:
        sys.exit("there is no chromium on this machine, so no page can be measured")
    with tempfile.TemporaryDirectory() as folder:
        trace = chosen.trace or Path(folder) / "trace"
        if chosen.trace is None:
            arguments = ["simulate", "spo", "--nodes", "8", "--loss", "0.02", "--messages", str(chosen.messages)]
            _ordercast(*arguments, "--out", str(trace))
            if chosen.repeat > 1:
                _repeat(trace, chosen.repeat)
        with browser() as page:
            _measure(page, trace)


def _repeat(trace: Path, times: int) -> None:
    """Puts a run behind itself, in the same file."""
    [path] = (trace / "events").rglob("*.parquet")
    table = pq.read_table(path)
    spans = {name: (pc.max(table[name]).as_py() or 0) + 1 for name in ("time", "step", "seq", "transmission")}
    longer = path.with_name(".longer")
    with pq.ParquetWriter(longer, table.schema, compression="zstd") as writer:
        for number in range(times):
            for name, span in spans.items():
                place = table.schema.get_field_index(name)
                if number:
                    moved = pc.add(table[name], pa.scalar(span, pa.int64()))
                    table = table.set_column(place, table.schema.field(name), moved)
            writer.write_table(table, row_group_size=1 << 17)
    longer.replace(path)


def _ordercast(*arguments: str) -> None:
    subprocess.run(  # noqa: S603
        [sys.executable, "-m", "ordercast.cli", *arguments], check=True, stdout=subprocess.DEVNULL
    )


def _measure(page: Page, trace: Path) -> None:
    begun = time.perf_counter()
    program = [sys.executable, "-u", "-m", "ordercast.cli", "view", str(trace), "--no-open"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        served = time.perf_counter() - begun
        page.open(address)
        page.until("typeof app === 'object' && Boolean(app.first && app.first.counted && !app.first.counted.waiting)")
        first, first_used = time.perf_counter() - begun, _cpu_seconds(process.pid)
        events = page.evaluate("app.first.run.rows")
        page.until("Boolean(app.first.summary)")
        summarised, used = time.perf_counter() - begun, _cpu_seconds(process.pid)
        page.evaluate("app.first.centre(app.first.run.duration / 2, app.first.run.duration / 1e5)")
        asked = time.perf_counter()
        page.until("!app.first.counted.waiting && !app.first.waiting")
        near = time.perf_counter() - asked
        page.evaluate("app.first.whole()")
        frames = page.evaluate(_ZOOMING % MOVES)
        heap, whole = page.memory(), page.process_memory()
        process.terminate()
    painting = json.loads(frames)
    print(f"{events:,} events; load of the machine: {Path('/proc/loadavg').read_text().split()[0]}")
    print(f"address after {served:.2f} s, first picture after {first:.2f} s ({first_used:.2f} s of the server's CPU)")
    print(f"latencies and stops after {summarised:.2f} s ({used:.2f} s of the server's CPU)")
    print(f"a hundred-thousandth of the run, in its middle, after {near:.2f} s more")
    for name in ("painting", "between"):
        found = sorted(painting[name])
        print(
            f"{name} frames: median {statistics.median(found):.1f} ms, 95 % {found[int(0.95 * len(found))]:.1f} ms, "
            f"most {found[-1]:.1f} ms, of {len(found)}"
        )
    print(f"memory of the page: {whole / 1e6:.0f} MB, all of its process; of its script: {heap / 1e6:.0f} MB")


def _cpu_seconds(process: int) -> float:
    """What a process has used, with its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


_ZOOMING = """(async () => {
  const between = [];
  app.first.frames.length = 0;
  let last = await new Promise(requestAnimationFrame);
  for (let move = 0; move < %d; move++) {
    if (move %% 3 === 2) app.first.pan(0.1); else app.first.zoom(move < 30 ? 0.8 : 1.25, 0.6);
    const now = await new Promise(requestAnimationFrame);
    between.push(now - last); last = now;
  }
  return JSON.stringify({ painting: app.first.frames, between });
})()"""

if __name__ == "__main__":
    main()
