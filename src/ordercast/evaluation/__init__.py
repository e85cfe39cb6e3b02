"""The evaluation: every table and figure of the papers as an experiment, run with any means of measuring.

Nothing here simulates or plots. `experiments(size)` lists them; `Experiment.run(measure)` gives a `Result`.
"""

from ordercast.evaluation import headers, prito, sequencer, spo, spo_table1, st
from ordercast.evaluation.experiment import Experiment, Measure, Size

__all__ = ["Experiment", "Measure", "Size", "experiments"]


def experiments(size: Size) -> list[Experiment]:
    """All of them, in the order in which they are reported."""
    makers = (
        spo_table1.table_1,
        spo.preacknowledgment,
        spo.log_length,
        st.figure_8,
        st.figure_9,
        st.figure_10,
        prito.waiting,
        prito.starvation,
        sequencer.figure_6,
        sequencer.figure_7,
        sequencer.packets,
        sequencer.interrupts,
        headers.header_bytes,
    )
    return [make(size) for make in makers]
