"""Semantic mutants of PO: its destinations, and each rule of go-back-n."""

from collections.abc import Callable
from typing import Any

from ordercast.protocols.po.go_back_n import GoBackN
from ordercast.protocols.po.machine import Po
from ordercast.protocols.spo.retransmission import Retransmission, SelectiveRepeat
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("protocols.po.go_back_n")
Method = Callable[..., Any]


@MUTANTS.add("a message may go to some nodes only", "protocols.po.machine")
def _takes_any_destinations() -> None:
    replace(Po, "handle", lambda self, event: self.spo.handle(event))


@MUTANTS.add("a packet ahead of a gap is kept")
def _keeps_what_is_ahead() -> None:
    replace(GoBackN, "receive_ahead", SelectiveRepeat.receive_ahead)


@MUTANTS.add("a first missing number is requested by every unit behind it")
def _requests_each_time() -> None:
    replace(GoBackN, "mark_requested", lambda *_: None)


@MUTANTS.add("an accepted copy causes a request while the copies behind it are on their way")
def _requests_while_copies_come() -> None:
    replace(GoBackN, "request_gap", GoBackN.request_if_new)


@MUTANTS.add("a gap that only a status shows is not requested at once")
def _ignores_statuses() -> None:
    replace(GoBackN, "received_status", lambda *_: None)


@MUTANTS.add("a request is not repeated")
def _never_repeats() -> None:
    replace(GoBackN, "repeat_requests", lambda *_: None)


@MUTANTS.add("only the first missing number is requested")
def _requests_one_packet() -> None:
    def around(missing: Method) -> Method:
        def changed(self: GoBackN, since: Any) -> Any:
            return tuple((source, ((first, first + 1),)) for source, ((first, _),) in missing(self, since))

        return changed

    wrap(GoBackN, "missing", around)


@MUTANTS.add("what there is no buffer for is requested")
def _requests_without_buffers() -> None:
    def missing(self: GoBackN, since: Any) -> Any:
        pairs = enumerate(zip(self.node.expected_to_me, self.node.seen_to_me, strict=True))
        return tuple((source, ((first, high),)) for source, (first, high) in pairs if since[source] <= first < high)

    replace(GoBackN, "missing", missing)


@MUTANTS.add("only the requested packet is sent again")
def _resends_one_packet() -> None:
    def answer_request(self: GoBackN, node: int, ranges: Any, out: Any) -> None:
        SelectiveRepeat.answer_request(self, node, ((ranges[0][0], ranges[0][0] + 1),), out)  # type: ignore[arg-type]  # it needs what all policies have

    replace(GoBackN, "answer_request", answer_request)


@MUTANTS.add("a source goes back once for each node that asks")
def _goes_back_for_each() -> None:
    def around(answer_request: Method) -> Method:
        def changed(self: GoBackN, node: int, ranges: Any, out: Any) -> None:
            self.just_retransmitted.clear()
            answer_request(self, node, ranges, out)

        return changed

    wrap(GoBackN, "answer_request", around)


@MUTANTS.add("a source goes back for a node that has acknowledged the number since")
def _goes_back_in_vain() -> None:
    def answer_request(self: GoBackN, node: int, ranges: Any, out: Any) -> None:
        del ranges
        for packet in self.node.sent.by_destination[node]:
            if packet.seq not in self.just_retransmitted:
                self.note_retransmission(packet, out)
                self.node.retransmit(packet, out)

    replace(GoBackN, "answer_request", answer_request)


@MUTANTS.add("new gaps are requested without a cool-down")
def _never_cools_down() -> None:
    replace(Retransmission, "request_unless_cooling_down", Retransmission.request_new)
