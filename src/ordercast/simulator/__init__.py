"""A deterministic discrete-event simulator of lossy channels; it runs the protocols' own machines.

| to change | see |
|---|---|
| a fault of units on their way (loss, duplication, partition) | `fault_rules`; its fields in `model.faults` |
| a fault of nodes (pause, crash) | `Simulation._is_unavailable`, `_handle_other` in `simulation` |
| when units arrive | `channels` |
| what nodes send, and when | `workloads` |
| what is counted | `counters`, `measurements` |
"""

from ordercast.simulator.result import RunResult
from ordercast.simulator.simulate import simulate

__all__ = ["RunResult", "simulate"]
