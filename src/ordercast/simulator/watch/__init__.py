"""What is watched in a run besides its trace: contents, copies, and what nodes keep. Machines are not asked."""

from ordercast.simulator.watch.watcher import Observed, Watcher

__all__ = ["Observed", "Watcher"]
