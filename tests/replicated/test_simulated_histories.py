"""Histories of all blocks from the simulator are linearizable: under loss, splits, crashes, exclusions and joins."""

import os
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest
from msgspec.structs import replace

from ordercast.model.history import Operation
from ordercast.trace.history import write_history
from tests.replicated.histories import violations
from tests.replicated.simulated import FAULTS, MODELS, PROTOCOLS, history_of, simulated

SEEDS = int(os.environ.get("HISTORY_SEEDS", "50"))
CASES = list(zip([(protocol, model) for protocol in PROTOCOLS for model in MODELS], cycle(FAULTS), strict=False))


def all_histories(protocol: str, faults: str, seeds: Iterator[int]) -> Iterator[list[Operation]]:
    """Of every block, over the same runs."""
    for seed in seeds:
        rows = simulated(protocol, FAULTS[faults], seed)
        for model in MODELS:
            found = history_of(model, rows, seed)
            assert violations(found.operations) == [], (model, seed)
            assert len(found.digests()) == 1, (model, seed)
            yield found.operations


@pytest.mark.parametrize(("case", "faults"), CASES, ids=lambda each: each if isinstance(each, str) else "-".join(each))
def test_histories_of_simulated_groups_are_linearizable(case: tuple[str, str], faults: str) -> None:
    protocol, model = case
    found = history_of(model, simulated(protocol, FAULTS[faults], 0), 0)
    assert len([each for each in found.operations if each.returned is not None]) > 6
    assert violations(found.operations) == []
    assert len(found.digests()) == 1


def test_operations_take_effect_before_they_return_and_that_is_needed() -> None:
    """The same histories, with calls only just before the returns: an order that fits is found for few of them."""
    found = history_of("register", simulated("sequencer", FAULTS["loss"], 0), 0).operations
    late = [replace(each, called=each.returned) for each in found if each.returned is not None]
    assert violations(late) != []


@pytest.mark.soak
@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_thousands_of_histories_of_simulated_groups(protocol: str, faults: str) -> None:
    """50 runs (HISTORY_SEEDS) for each protocol and kind of fault: 10,800 histories of keys of all blocks.

    They are written to the folder HISTORY_FOLDER, if there is one, for `ordercast audit --history FOLDER --spark`.
    """
    folder = os.environ.get("HISTORY_FOLDER")
    found = list(all_histories(protocol, faults, iter(range(SEEDS))))
    assert len(found) == SEEDS * len(MODELS)
    if folder:
        named = (replace(each, run=f"{protocol} {faults} {each.run}") for operations in found for each in operations)
        write_history(Path(folder) / f"{protocol}-{faults}.parquet", list(named))
