"""The evaluation: every table and figure of the papers as an experiment (package `papers`).

Nothing here simulates or plots. `experiments(size)` lists them; `Experiment.run(measure)` gives a `Result`, where
`measure` simulates configurations, for instance `ordercast.pipeline.measure`.
"""

from ordercast.evaluation.experiment import Experiment, Measure, Size
from ordercast.evaluation.papers import (
    header_size,
    lone_messages,
    prito_waiting,
    sequencer_figures_6_and_7,
    spo_delay_and_log_length,
    spo_table_1,
    st_figures_8_to_10,
    units_and_throughput,
)

__all__ = ["Experiment", "Measure", "Size", "experiments"]


def experiments(size: Size) -> list[Experiment]:
    """All experiments, in the order in which they are reported."""
    makers = (
        spo_table_1.table_1,
        spo_delay_and_log_length.preacknowledgment,
        spo_delay_and_log_length.log_length,
        st_figures_8_to_10.figure_8,
        st_figures_8_to_10.figure_9,
        st_figures_8_to_10.figure_10,
        prito_waiting.waiting,
        prito_waiting.starvation,
        sequencer_figures_6_and_7.figure_6,
        sequencer_figures_6_and_7.figure_7,
        sequencer_figures_6_and_7.packets,
        sequencer_figures_6_and_7.interrupts,
        lone_messages.lone_messages,
        units_and_throughput.units_under_load,
        units_and_throughput.throughput_by_loss,
        units_and_throughput.throughput_by_delay,
        header_size.header_bytes,
    )
    return [make(size) for make in makers]
