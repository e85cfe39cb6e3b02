"""One machine of the printed sequencer's broadcast on the table, and what it is handed."""

from typing import Any

from ordercast.model.config import GroupConfig, PaperRules, SequencerConfig, SequencerReadings
from ordercast.model.machine import (
    Output,
    Receive,
    Send,
)
from ordercast.model.units import Packet
from ordercast.protocols.sequencer.paper.machine import SequencerPaper
from ordercast.protocols.sequencer.paper.units import (
    PaperBroadcast,
    PaperData,
)
from tests.protocols.sequencer_paper.datagrams import E2, SEQUENCER

RUNS: dict[str, Any] = {"first_id": 1}
ALL: dict[str, Any] = {
    **RUNS,
    "acknowledges_last": True,
    "advances_own_row": True,
    "whole_answers": True,
    "older_are_duplicates": True,
    "asks_once": True,
}


def node(me: int, history: int = 20, nodes: int = 3, **readings: Any) -> SequencerPaper:
    config = GroupConfig(
        nodes=nodes,
        paper=PaperRules(sequencer=SequencerReadings(**RUNS | readings)),
        sequencer=SequencerConfig(history=history),
    )
    return SequencerPaper(me, config)


def message(source: int, number: int) -> Packet:
    return Packet(source, 7, number, (), number - 1, (1,), b"x")


def data(source: int, number: int, last: int = 0) -> Receive:
    return Receive(PaperData(message(source, number), last, number))


def broadcast(number: int, source: int = E2) -> Receive:
    return Receive(PaperBroadcast(message(source, number + 1), SEQUENCER, number, number + 1))


def sends(outputs: list[Output]) -> list[Send]:
    return [output for output in outputs if isinstance(output, Send)]
