"""What fixed seeds give, as digests: traces, searches, bytes of units. Compiled modules must give the same.

python -m tests.compiled.results SEEDS
"""

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

from ordercast.explorer.explore import explore
from ordercast.explorer.scenarios import default_scripts, scenario
from ordercast.explorer.state_space import StateSpace
from ordercast.model.compiled import is_compiled
from ordercast.model.runs import RunConfig
from ordercast.protocols.registry import PROTOCOLS
from ordercast.simulator import simulate
from ordercast.swarm import draw_config
from ordercast.swarm.draw_membership import draw_changing
from ordercast.swarm.draw_restarts import draw_restarting
from ordercast.wire.codec import Codec
from ordercast.wire.control import CONTROL

NODES, STEPS = 3, 400


def trace_of(config: RunConfig) -> str:
    """The digest of a run's trace and of its result."""
    with tempfile.TemporaryDirectory() as folder:
        result = simulate(config, Path(folder, "trace"))
        found = hashlib.sha256(repr((result.counters, result.virtual_time, result.waits, result.kept)).encode())
        for path in sorted(Path(folder).rglob("*.parquet")):
            found.update(path.read_bytes())
    return found.hexdigest()


def searches(protocol: str) -> Iterator[tuple[int, ...]]:
    """What a search counts, with the reduction and without it."""
    asked = scenario(protocol, default_scripts(protocol, 2), losses=1, firings=1)
    for reduced in (False, True):
        report = explore(asked, 50_000, reduced=reduced)
        assert report.counterexample is None, str(report)
        yield report.states, report.edges, report.node_states, report.continued, report.longest, report.depth


def sent(protocol: str, seed: int) -> str:
    """The digest of all units of a schedule drawn at random, as they are on the wire."""
    asked = scenario(protocol, default_scripts(protocol, NODES), losses=6, duplicates=2, firings=60)
    space, chance, codec = StateSpace(asked), Random(seed), Codec(protocol, CONTROL)
    state = space.initial_state()
    for _ in range(STEPS):
        possible = space.steps(state)
        if possible:
            state, _ = space.successor(state, chance.choice(possible))
    return hashlib.sha256(b"".join(bytes(codec.encode(unit)) for unit in space.nodes.units)).hexdigest()


def results(seeds: int) -> Iterator[tuple[str, object]]:
    """Everything, by what it is of."""
    for protocol in sorted(PROTOCOLS):
        for seed in range(seeds):
            yield f"{protocol} run {seed}", trace_of(draw_config(seed, protocol=protocol, most_nodes=5, receipts=500))
            yield f"{protocol} views {seed}", trace_of(draw_changing(seed, protocol))
            yield f"{protocol} logs {seed}", trace_of(draw_restarting(seed, protocol))
            yield f"{protocol} bytes {seed}", sent(protocol, seed)
        yield f"{protocol} searches", list(searches(protocol))


if __name__ == "__main__":
    found = dict(results(int(sys.argv[1])))
    json.dump({"compiled": is_compiled(), "results": found}, sys.stdout)
