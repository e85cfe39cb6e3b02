"""The failure detector of the current view in real time: heartbeats, questions, and what watchers ask each other."""

import time
from collections.abc import Callable

from ordercast.live.host.heartbeat_thread import HeartbeatThread
from ordercast.live.host.timers import Timers
from ordercast.live.transport.transport import Transport
from ordercast.model.config import SECOND
from ordercast.model.machine import SetTimer
from ordercast.model.nodes import members
from ordercast.protocols.membership.failure_detector import DetectorConfig, FailureDetector
from ordercast.wire.control import Heartbeat, LastHeard, LastHeardRequest, Stage


class FailureDetection:
    """Watches the members of a view, from `enter_view` to `stop`. Used inside one event loop."""

    def __init__(  # noqa: PLR0913
        self,
        transport: Transport,
        failure_timeout: int,
        pause_timeout: int,
        *,
        stage: Callable[[], Stage],
        suspect: Callable[[int], None],
        unheard: Callable[[int], None],
        drained: Callable[[], None],
        paused: Callable[[], None],
    ) -> None:
        """`pause_timeout`: for how long this member says that it is alive while its event loop is blocked.

        `stage`: how far this member has closed, which heartbeats say; `suspect`: is told places of the view.

        `unheard`: is told places that others hear and this member does not.

        `drained` or `paused` is called after each tick, before which datagrams were read; see `Timers`.
        """
        self._transport, self._stage, self._suspect, self._unheard = transport, stage, suspect, unheard
        self._config = DetectorConfig(failure_timeout=failure_timeout)
        self._timers = Timers(self._tick, before=transport.read, drained=drained, paused=paused)
        self._detector: FailureDetector
        self._pause_timeout = pause_timeout / SECOND
        self._thread = self._new_thread()
        self.known_active = 0
        """Places from which something arrived since the last tick."""

    def enter_view(self, me: int, nodes: int) -> None:
        """Watches the members of a new view."""
        self._detector = FailureDetector(me, nodes, self._config)
        self.known_active = 0
        self._thread.stop()
        self._thread = self._new_thread()  # also after `stop`: a member that was excluded returns
        self._hand_over(self._stage())
        self._timers.set(SetTimer("tick", self._config.tick))

    def stop(self) -> None:
        """Watches nobody any more, and says nothing."""
        self._thread.stop()
        self._timers.cancel_all()

    def active(self, place: int) -> None:
        """Something arrived from this place: it is alive."""
        self.known_active |= 1 << place
        self._detector.active |= 1 << place

    def answer(self, watcher: int, request: LastHeardRequest) -> None:
        """Tells another watcher of a member when we heard from that one."""
        if request.member < self._detector.nodes:
            ago = self._detector.last_heard(request.member)
            self._transport.send_control(LastHeard(request.member, request.tick, ago), watcher)

    def answered(self, answer: LastHeard) -> None:
        """Another watcher has told."""
        self._detector.vouch(answer.member, answer.ago, answer.tick)

    def _new_thread(self) -> HeartbeatThread:
        return HeartbeatThread(self._config.heartbeat / SECOND, self._pause_timeout)

    def _hand_over(self, stage: Stage) -> None:
        """From now on the thread speaks for the event loop, if that stops."""
        self._thread.ticked(self._transport.heartbeats(stage, members(self._detector.watchers)))

    def _tick(self, _: str) -> None:
        """Twice in a heartbeat: sends heartbeats to those that watch this member, and finds out who has failed."""
        detector, send, stage = self._detector, self._transport.send_control, self._stage()
        duties = detector.tick(time.monotonic_ns())
        self.known_active = 0
        self._hand_over(stage)
        for place in members(duties.heartbeats):
            send(Heartbeat(stage), place)
        for place in members(duties.questions):
            send(Heartbeat(stage, asks=True), place)
        for watcher, member in duties.probes:
            send(LastHeardRequest(member, detector.ticks), watcher)
        self._timers.set(SetTimer("tick", self._config.tick))
        if duties.suspected:
            self._suspect(duties.suspected)
        if duties.unheard:
            self._unheard(duties.unheard)
