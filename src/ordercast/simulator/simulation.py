"""The event loop of a run: machines, a channel, faults and workloads on one virtual clock.

Time is whole nanoseconds. Events of one instant happen in the order in which they were scheduled. A run therefore
depends on nothing but its configuration.
"""

from collections.abc import Callable
from heapq import heappop
from typing import Any

from ordercast.model.config import require
from ordercast.model.faults import (
    Crash,
    DiskFailure,
    Join,
    Leave,
    NodeFault,
    Pause,
    Quit,
    Restart,
    Return,
    Split,
    Suspicion,
    back_at,
    founders_of,
    returned_nodes,
)
from ordercast.model.machine import (
    Abort,
    CancelTimer,
    Deliver,
    Depart,
    Discard,
    Enter,
    GiveUp,
    Machine,
    MembershipInput,
    NotSent,
    Numbered,
    Output,
    Reached,
    ReachedByView,
    Receive,
    Resumed,
    Send,
    SetTimer,
    Stopped,
    Submit,
    Suspect,
    TimerFired,
)
from ordercast.model.nodes import members
from ordercast.model.progress import Progress
from ordercast.model.runs import CHANNEL_GUARANTEES, Pattern, RunConfig, TraceDetail
from ordercast.model.services import PRIORITISED
from ordercast.model.units import DataUnit
from ordercast.protocols.restart.node_log import Recovered, Synced
from ordercast.simulator.completion import Completion
from ordercast.simulator.counters import Counters
from ordercast.simulator.event_queue import EventQueue
from ordercast.simulator.fault_recorder import FaultRecorder
from ordercast.simulator.machines import machine_of
from ordercast.simulator.measurements import Measurements
from ordercast.simulator.network import SimulatedNetwork
from ordercast.simulator.node_logs import NodeLogs
from ordercast.simulator.pending_events import (
    DRAINED,
    Arrival,
    AtLine,
    Departure,
    DiskSynced,
    LoopBack,
    Lost,
    PendingEvent,
    StartAgain,
    timer,
)
from ordercast.simulator.result import RunResult
from ordercast.simulator.view_completion import ViewCompletion
from ordercast.simulator.view_records import ViewRecords
from ordercast.simulator.watch import Watcher
from ordercast.simulator.workloads import submissions, to_send
from ordercast.trace.recorder import EventRecorder, Recorder, Sink
from ordercast.trace.schema import EventKind

_PROGRESS_MASK = (1 << 14) - 1  # called once in so many events
_MAX_STALL_TIMEOUTS = 32  # multiples of the stall timeout that a pause or a partition may last


class Simulation:
    """One run of a group. Create it, then call `run` once."""

    def __init__(
        self,
        config: RunConfig,
        sink: Sink | None = None,
        *,
        machine: type[Machine] | None = None,
        fault_recorder: FaultRecorder | None = None,
        recorder: EventRecorder | None = None,
    ) -> None:
        """`sink`: takes the rows of the trace that the configuration asks for; `recorder`: records it instead.

        `machine`: replaces the protocol's own; `fault_recorder`: records the effects of faults.
        """
        nodes = config.group.nodes
        self.config = config
        kind = machine or machine_of(config)
        _require_channel(config, kind)
        self.machines: list[Machine] = [kind(node, config.group) for node in range(nodes)]
        self.counters = Counters()
        self._recorder = recorder
        if sink is not None and config.record is not TraceDetail.NONE:
            self._recorder = Recorder(
                *(nodes, sink),
                deliveries_only=config.record is TraceDetail.DELIVERIES,
                by_priority=config.protocol in PRIORITISED,
            )
        self._events = EventQueue()
        self._schedule = self._events.schedule
        self._network = SimulatedNetwork(
            config, kind.echo, self._events, self.counters, recorder=self._recorder, fault_recorder=fault_recorder
        )
        self._timers: list[dict[str, int]] = [{} for _ in range(nodes)]  # by name: the running number of its event
        # A node that sends all at once always has slightly more submitted than its window admits.
        self._saturated = config.workload.pattern is Pattern.EVERYBODY and config.workload.scripted_sends() is None
        self._workloads = [submissions(config, node) for node in range(nodes)]

        self._has_node_faults = any(isinstance(fault, NodeFault) for fault in config.faults)
        self._crashed = [False] * nodes
        founders = founders_of(config.faults, nodes)
        self._absent = [node not in founders for node in range(nodes)]
        self._paused_until = [0] * nodes

        self._completion = Completion(nodes, to_send(config), has_views=kind.has_views)
        self._membership: ViewCompletion | None = None
        if config.group.views and kind.has_views:
            self._completion = self._membership = ViewCompletion(nodes, to_send(config), founders)
        self._measurements = Measurements(nodes, self.counters, self._completion, self._recorder)
        self._views = ViewRecords(nodes, founders, self._completion, self._measurements, self._recorder)
        self._handlers: dict[type, Callable[[int, int, Any], None]] = {
            Abort: self._abort,
            CancelTimer: self._cancel_timer,
            Deliver: self._measurements.deliver,
            Discard: self._measurements.discard,
            NotSent: self._not_sent,
            Numbered: self._numbered,
            Reached: self._measurements.reached,
            ReachedByView: self._measurements.reached,
            Resumed: self._measurements.resumed,
            Send: self._network.send,
            SetTimer: self._set_timer,
            Stopped: self._measurements.stopped,
            **self._views.handlers(),
        }
        self._logs: NodeLogs | None = None
        if config.logs:
            self._logs = NodeLogs(config, self._events, self._recorder, self._completion)
            self._handlers |= self._logs.handlers()
        self._watcher: Watcher | None = None

    def watch(self) -> Watcher:
        """Gives messages contents, and observes what machines do with them; call it before `run`."""
        watcher = self._watcher = Watcher(self.config, self.machines)
        self._workloads = [watcher.given(node, each) for node, each in enumerate(self._workloads)]
        self._handlers |= watcher.before(self._handlers)
        return watcher

    def run(self, progress: Progress | None = None) -> RunResult:
        """Runs until no event is left, or there is no more progress. `progress` gets messages sent and to send."""
        total = sum(to_send(self.config))
        self._schedule_all()
        heap, counters = self._events.heap, self.counters
        stalled, silent, entries = False, True, 0
        while heap:
            time, number, node, what, transmission = heappop(heap)
            entries += 1
            if not entries & _PROGRESS_MASK and progress is not None:
                progress(counters.sent, total)
            if self._has_node_faults and self._is_unavailable(time, number, node, what, transmission):
                continue
            if type(what) is Receive:
                counters.interrupts += 1
                self._hand(time, node, what, transmission)
            elif type(what) is Submit:
                self._submit(time, node, what)
            elif type(what) is not TimerFired:
                self._handle_other(time, node, what, transmission)
            elif self._timers[node].get(what.name) == number:
                if time - max(self._measurements.last_progress, self._faults_end(time)) > self.config.stall_timeout:
                    silent, stalled = False, not self._is_at_rest()  # heartbeats go on after completion
                    break
                self._fire(time, node, what)
        if self._recorder is not None:
            self._recorder.flush()
        return self._result(stalled=stalled, silent=silent)

    def _hand(self, time: int, node: int, event: Receive, transmission: int) -> None:
        self.counters.received += isinstance(event.unit, DataUnit)
        if self._network.buffered:
            self._network.handed(node)
        if self._recorder is not None:
            self._recorder.arrive(time, node, event.unit, transmission)
        machine = self.machines[node]
        self._carry_out(time, node, machine.handle(event))
        if self.config.network.drained and self._network.is_drained(node):
            self._carry_out(time, node, machine.handle(DRAINED))

    def _faults_end(self, time: int) -> int:
        """The end of the last pause or partition that has begun: until then a lack of progress is no stall."""
        most = _MAX_STALL_TIMEOUTS * self.config.stall_timeout
        begun = [fault for fault in self.config.faults if isinstance(fault, Pause | Split) and fault.at <= time]
        ends = [fault.at + fault.lasting for fault in begun if fault.lasting <= most]
        if self._membership is not None:  # members may wait for one that comes or goes later
            ends += [fault.at for fault in self.config.faults if isinstance(fault, NodeFault) and fault.at <= most]
        return max(ends, default=0)

    def _fire(self, time: int, node: int, what: TimerFired) -> None:
        del self._timers[node][what.name]
        if self._recorder is not None:
            self._recorder.note(time, node, EventKind.TIMEOUT, what.name)
        self._carry_out(time, node, self.machines[node].handle(what))

    # --- other events: submissions, buffers, faults of nodes ---

    def _is_unavailable(self, time: int, number: int, node: int, what: PendingEvent, transmission: int) -> bool:
        """True if the node is crashed or not there yet; or paused: the event is postponed to the end of the pause."""
        if self._crashed[node]:
            return not isinstance(what, Return)
        if self._absent[node] and not isinstance(what, Enter | StartAgain):
            return True
        until = self._paused_until[node]
        if time >= until or isinstance(what, AtLine | Arrival | Lost | Crash | Pause | Return):
            return False
        self._events.postpone(until, number, node, what, transmission)
        return True

    def _schedule_all(self) -> None:
        for fault in self.config.faults:
            if isinstance(fault, NodeFault):
                node = fault.by if isinstance(fault, Suspicion) else fault.node
                self._schedule(fault.at, node, Enter() if isinstance(fault, Join) else fault)
        for node, back in returned_nodes(self.config.faults, self.config.group.nodes).items():
            if isinstance(back, Restart):
                self._schedule(back_at(back), node, StartAgain(back.node))
        if self._membership is not None:
            for node in members(self._views.latest.members):
                self._schedule(0, node, Enter())
        for node in range(self.config.group.nodes):
            if not self._absent[node]:
                self._schedule_first_submissions(node)

    def _schedule_first_submissions(self, node: int) -> None:
        for _ in range(self.config.group.window + 1 if self._saturated else 1):
            self._schedule_submission(node)

    def _schedule_submission(self, node: int, now: int = 0) -> None:
        for time, submission in self._workloads[node]:
            self._schedule(max(now, time), node, submission)
            return

    def _submit(self, time: int, node: int, what: Submit) -> None:
        if not self._views.ended[node]:
            self._carry_out(time, node, self.machines[node].handle(what))
            if not self._saturated:
                self._schedule_submission(node)

    def _handle_other(self, time: int, node: int, what: PendingEvent, transmission: int) -> None:
        match what:
            case AtLine() | Arrival():
                self._network.arrive(time, node, what, transmission)
            case Departure():
                self._network.depart(time, node, what.output)
            case LoopBack():
                self._hand(time, node, what.event, transmission)
            case Lost():
                assert self._recorder is not None
                self._recorder.lose(time, node, what.unit, transmission, what.cause)
            case Pause():
                self._paused_until[node] = max(self._paused_until[node], time + what.lasting)
                self._network.pause(node, self._paused_until[node])
            case Crash():
                self._crash(time, node)
            case Enter():
                self._enter(time, node, what)
            case Leave():
                self._change(time, node, Depart())
            case Quit() | Suspicion():
                self._tell(time, node, what)
            case Return():
                self._return(time, what)
            case Restart() | DiskFailure() | DiskSynced() | StartAgain():
                self._handle_disk(time, node, what)

    def _tell(self, time: int, node: int, what: Quit | Suspicion) -> None:
        """What the host of a node tells its machine."""
        if isinstance(what, Suspicion):
            self._carry_out(time, node, self.machines[node].handle(Suspect(1 << what.node)))
        elif not self._views.ended[node]:
            self._carry_out(time, node, self.machines[node].handle(GiveUp("its host gave the group up")))

    def _crash(self, time: int, node: int) -> None:
        self._crashed[node] = True
        self._completion.left(node)
        if self._recorder is not None:
            self._recorder.note(time, node, EventKind.CRASH, None)

    def _enter(self, time: int, node: int, event: Enter) -> None:
        """A founder begins; any other node is there from now on, joins, and sends."""
        if self._absent[node]:
            assert self._membership is not None, "nodes join only groups with views"
            self._absent[node] = False
            self._membership.joins(node)
            self._schedule_first_submissions(node)
        self._change(time, node, event)

    def _change(self, time: int, node: int, event: MembershipInput | Synced | Recovered) -> None:
        machine: Any = self.machines[node]  # with views it is one whose members come and go
        self._carry_out(time, node, machine.handle(event))

    def _return(self, time: int, fault: Return) -> None:
        """The process starts again as a new node; if it still ran, it ends now."""
        if not self._crashed[fault.node]:
            if fault.node in self._completion.gone():
                self._crashed[fault.node] = True
            else:
                self._crash(time, fault.node)
        nodes = returned_nodes(self.config.faults, self.config.group.nodes)
        node = next(node for node, each in nodes.items() if each is fault)
        self._enter(time, node, Enter())

    # --- logs ---

    def _handle_disk(self, time: int, node: int, what: Restart | DiskFailure | DiskSynced | StartAgain) -> None:
        assert self._logs is not None, "only nodes with logs have disks"
        if isinstance(what, Restart):
            self._crash(time, node)
            self._logs.lose(node, power=what.power)
        elif isinstance(what, DiskFailure):
            self._logs.fail(node)
        elif isinstance(what, DiskSynced):
            self._change(time, node, self._logs.synced(time, node))
        else:
            recovered = self._logs.recover(time, what.old, node)
            if self._watcher is not None:
                self._watcher.recover(node, recovered)
            self._change(time, node, recovered)
            self._enter(time, node, Enter())

    # --- outputs of machines ---

    def _carry_out(self, time: int, node: int, outputs: list[Output]) -> None:
        for output in outputs:
            self._handlers[type(output)](time, node, output)

    def _set_timer(self, time: int, node: int, output: SetTimer) -> None:
        self._timers[node][output.name] = self._schedule(time + output.after, node, timer(output.name))

    def _cancel_timer(self, time: int, node: int, output: CancelTimer) -> None:
        del time
        self._timers[node].pop(output.name, None)

    def _abort(self, time: int, node: int, output: Abort) -> None:
        self._views.ended[node] = True
        self._completion.aborted(node)
        self._measurements.last_progress = time
        if self._recorder is not None:
            self._recorder.note(time, node, EventKind.ABORT, output.why)

    def _not_sent(self, time: int, node: int, output: NotSent) -> None:
        assert self._membership is not None, "only with views a destination may be no member"
        self._membership.not_sent(node, output.messages, output.first)
        if self._saturated:
            self._schedule_submission(node, time)

    def _numbered(self, time: int, node: int, output: Numbered) -> None:
        self._measurements.numbered(time, node, output.packet)
        if self._saturated:
            self._schedule_submission(node, time)

    def _is_at_rest(self) -> bool:
        """True if the run is complete and no node waits for anything."""
        waits = (machine.waits_for() for node, machine in enumerate(self.machines) if not self._crashed[node])
        return self._completion.is_complete() and not any(waits)

    def _result(self, *, stalled: bool, silent: bool) -> RunResult:
        nodes, aborted = range(self.config.group.nodes), self._completion.aborted_nodes()
        waits = tuple(() if self._crashed[node] else self.machines[node].waits_for() for node in nodes)
        resilience = self.config.group.sequencer.resilience if self.config.protocol == "sequencer" else 0
        blocked = self._membership is not None and self._membership.is_blocked(resilience)
        return RunResult(
            config=self.config,
            counters=self.counters,
            virtual_time=self._measurements.last_progress,
            complete=self._completion.is_complete() and not (blocked and any(waits)),
            stalled=stalled,
            aborted=bool(aborted),
            crashed=tuple(node for node in nodes if self._crashed[node]),
            aborted_nodes=aborted,
            view=self._views.latest.number,
            view_time=self._views.time,
            members=members(self._views.latest.members),
            left=self._completion.gone(),
            blocked=blocked,
            waits=waits,
            silent=silent,
            kept=tuple(map(self._kept, nodes)),
        )

    def _kept(self, node: int) -> int:
        """Packets in the logs of a node, but for those of crashed nodes that it did not deliver.

        An idle group need not notice that a node crashed, and then keeps these.
        """
        if self._crashed[node]:
            return 0
        unnoticed = tuple(other for other in members(self._views.latest.members) if self._crashed[other])
        return max(0, self.machines[node].log_sizes().total() - self._completion.undelivered(node, unnoticed))


def _require_channel(config: RunConfig, kind: type[Machine]) -> None:
    require(
        config.network.channel.serves(kind.needs),
        f"{config.protocol} needs the channel `{kind.needs.value}`, on which {CHANNEL_GUARANTEES[kind.needs]}; "
        f"on `{config.network.channel.value}` {CHANNEL_GUARANTEES[config.network.channel]}",
    )
