"""What is kept and recorded when machines tell how the membership of a run changes."""

from collections.abc import Callable
from typing import Any

from ordercast.model.machine import CutOff, Departed, ExcludedFrom, Reconnected, Renumbered, ViewInstalled
from ordercast.model.nodes import everybody, mask_of, members
from ordercast.simulator.completion import Completion
from ordercast.simulator.measurements import Measurements
from ordercast.simulator.view_completion import ViewCompletion
from ordercast.trace.recorder import EventRecorder


class ViewRecords:
    """The views of one run, and the rows of its trace about them."""

    def __init__(
        self,
        nodes: int,
        founders: tuple[int, ...],
        completion: Completion,
        measurements: Measurements,
        recorder: EventRecorder | None,
    ) -> None:
        self.latest = ViewInstalled(0, mask_of(founders), "")
        self.time = 0
        """When a node first installed the latest view."""
        self.ended = [False] * nodes
        """By node: it aborted, left or is excluded, so that nothing more is submitted there."""
        self._everybody = everybody(nodes)
        self._members = 0  # of all views that have numbers
        self._completion, self._measurements, self._recorder = completion, measurements, recorder

    def handlers(self) -> dict[type, Callable[[int, int, Any], None]]:
        """By output: what is done with it."""
        return {
            CutOff: self._cut_off,
            Departed: self._departed,
            ExcludedFrom: self._excluded,
            Reconnected: self._reconnected,
            Renumbered: self._renumbered,
            ViewInstalled: self._view,
        }

    def _view(self, time: int, node: int, output: ViewInstalled) -> None:
        self._measurements.last_progress = time
        if output.number > self.latest.number:
            self.latest, self.time = output, time
        if output.heard is not None:  # members may join
            gone = self._members & ~output.members
            self._members |= output.members
            if isinstance(self._completion, ViewCompletion) and output.members >> node & 1:
                self._completion.enters(node, output.number, output.places or members(output.members))
        else:
            gone = self._everybody & ~output.members
        for other in members(gone):
            self._completion.left(other)  # whether it has learned of it or not
        if not output.members >> node & 1:
            self.ended[node] = True
        if self._recorder is not None:
            self._recorder.view(time, node, output)

    def _departed(self, time: int, node: int, output: Departed) -> None:
        self._end(time, node)
        if self._recorder is not None:
            self._recorder.leave(time, node, drained=output.drained)

    def _excluded(self, time: int, node: int, output: ExcludedFrom) -> None:
        self._end(time, node)
        if self._recorder is not None:
            self._recorder.exclude(time, node, output.number, output.why)

    def _end(self, time: int, node: int) -> None:
        self.ended[node] = True
        self._completion.left(node)
        self._measurements.last_progress = time

    def _cut_off(self, time: int, node: int, output: CutOff) -> None:
        if self._recorder is not None:
            self._recorder.block(time, node, output.lacks)

    def _reconnected(self, time: int, node: int, output: Reconnected) -> None:
        del output
        if self._recorder is not None:
            self._recorder.unblock(time, node)

    def _renumbered(self, time: int, node: int, output: Renumbered) -> None:
        self._measurements.last_progress = time
        if self._recorder is not None:
            self._recorder.renumber(time, node, output.packet, output.view)
