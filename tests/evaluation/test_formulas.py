"""The formulas, against values worked by hand and against the golden data."""

import json
from pathlib import Path
from typing import Any

import pytest

from ordercast.evaluation import formulas
from ordercast.model.units import header_size

GOLDEN = Path(__file__).parent.parent / "golden"
ST: dict[str, Any] = json.loads((GOLDEN / "golden-spo-st.json").read_text())["st_formulas"]
SPO: dict[str, Any] = json.loads((GOLDEN / "golden-spo-st.json").read_text())["spo_table1"]
SEQUENCER: dict[str, Any] = json.loads((GOLDEN / "golden-prito-seq.json").read_text())["sequencer"]


@pytest.mark.parametrize("row", SPO["rows"], ids=lambda row: f"m={row['m']}")
def test_table_1(row: dict[str, float]) -> None:
    found = formulas.table_1(SPO["n"], int(row["m"]))
    assert (found["to"], found["po"], found["spo"]) == (SPO["N_TO"], row["N_PO"], row["N_SPO"])


def test_what_is_sent_again_after_a_loss_tends_to_table_1_when_much_is_on_the_way() -> None:
    assert formulas.resent_after_loss(16, 4, 200, 40) == {"to": 82, "po": 7, "spo": 3.25}  # 5 on the way from a source
    much = formulas.resent_after_loss(16, 4, 1e9, 1)
    table = formulas.table_1(16, 4)
    assert much["po"] / much["to"] == pytest.approx(table["po"])
    assert much["spo"] / much["to"] == pytest.approx(table["spo"])


def test_the_time_to_preacknowledgment() -> None:
    assert formulas.preacknowledgment_time_printed(10, 60) == 40
    assert formulas.preacknowledgment_time(10, 60, 1) == 40  # one destination: the printed form
    assert formulas.preacknowledgment_time(10, 60, 2) == 50
    assert formulas.preacknowledgment_time(10, 60, 5) == 60
    assert formulas.preacknowledgment_time_poisson(10, 60, 1) == 70
    assert formulas.preacknowledgment_time_poisson(10, 60, 3) == pytest.approx(120)  # 1 + 1/2 + 1/3 is 11/6
    assert formulas.log_length(50, 4, 20) == 10


# Those for exactly d destinations are left out: no formula here is about them.
POINTS = [row for row in ST["fig8_fig10"] if "(1-f)^d" not in row["F_form"]]


@pytest.mark.parametrize("row", POINTS, ids=lambda row: f"{row['F_form']} f={row['f']} d/n={row['d_over_n']}")
def test_the_formulas_of_st_at_every_golden_point(row: dict[str, Any]) -> None:
    assert len(POINTS) >= 20
    n, messages, f = row["n"], row["L"], row["f"]
    d = row["d_over_n"] * n
    form = formulas.received_by_all_printed if "printed" in row["F_form"] else formulas.received_by_all
    received = form(f, d, n)
    assert received == pytest.approx(row["F"])
    assert formulas.selective_ratio(received) == pytest.approx(row["RS_over_L"])
    assert formulas.go_back_ratio(received, messages) == pytest.approx(row["RG_over_L"])
    for key, places in (("C_over_D", False), ("C_over_D_with_nL_factor", True)):
        found = formulas.recovery_ratio(received, f, d, n, messages, all_places=places)
        assert found == pytest.approx(row[key], abs=1e-9)


def test_going_back_by_the_sum_of_equation_2() -> None:
    received, messages = 0.9, 7
    summed = sum(received ** (place - 1) * (1 - received) * (messages - place + 1) for place in range(1, messages + 1))
    assert formulas.go_back_ratio(received, messages) == pytest.approx(summed / messages)
    assert formulas.go_back_ratio(1, messages) == 0


def test_the_exponent_by_counting_every_case() -> None:
    """Three nodes, each a destination with chance 2/3, which then loses with chance 1/2: all eight cases."""
    expected = 0.0
    for destinations in range(8):
        size = destinations.bit_count()
        expected += (2 / 3) ** size * (1 / 3) ** (3 - size) * (1 / 2) ** size
    assert formulas.received_by_all(0.5, 2, 3) == pytest.approx(expected)
    assert formulas.received_by_all_printed(0.5, 2, 3) != pytest.approx(expected)


def test_the_sequencers_numbers() -> None:
    for case in SEQUENCER["packets_per_broadcast"]["cases"]:
        assert formulas.packets_per_broadcast(case["nodes"], case["HISTORY_SIZE"]) == pytest.approx(case["packets"])
    for case in SEQUENCER["interrupts"]["cases"]:
        found = formulas.interrupts(case["n"])
        assert (found["sequencer"], found["chang_maxemchuk"], found["rpc"]) == (case["this"], case["cm"], case["rpc"])
    for nodes, delay in SEQUENCER["fig6"]["group_size_to_delay_ms"].items():
        assert formulas.broadcast_delay(int(nodes)) == pytest.approx(delay, abs=0.0101)
    assert formulas.packets_with_dummies(2, 10) == 2  # nobody is left to send a dummy


def test_the_header_of_three_vectors_is_the_one_that_units_have() -> None:
    for nodes in (2, 3, 8, 9, 64, 1024):
        assert formulas.header_bytes(nodes, vectors=3, numbers=2) == header_size(nodes)
    assert formulas.header_bytes(10, vectors=0, numbers=1) == 22


def test_the_bound_of_prito() -> None:
    assert formulas.waiting_bound(1600, 100, 100) == 2400


def test_recovery_by_the_printed_rules_is_the_printed_formula_where_everything_is_for_everybody() -> None:
    received = formulas.received_by_all(0.001, 10, 10)
    printed = formulas.recovery_ratio(received, 0.001, 10, 10, 100, all_places=False)
    assert formulas.recovery_ratio_of_printed_rules(received, 10, 10, 100) == pytest.approx(printed, rel=0.001)
    assert formulas.recovery_ratio_of_printed_rules(0.5, 2, 4, 1) == 0.125  # 1 − F^L, R_G/L and d/n are 1/2 each
