"""Semantic mutants of the links of live members: what is lost and repeated, what is handed over, how fast it goes."""

from ordercast.live.transport.link_receiver import LinkReceiver
from ordercast.live.transport.link_sender import LinkSender
from ordercast.live.transport.path_model import PathModel
from tests.mutations.mutation import Mutants, replace

MUTANTS = Mutants("live.transport.link_sender")


@MUTANTS.add("what waits for an earlier datagram is never handed over", "live.transport.link_receiver")
def _hands_over_nothing_that_was_held() -> None:
    replace(LinkReceiver, "_following", lambda _: [])


@MUTANTS.add("whatever number comes is taken for one of a member", "live.transport.link_receiver")
def _believes_every_number() -> None:
    replace(LinkReceiver, "_is_possible", lambda *_: True)


@MUTANTS.add("what is not acknowledged for long is not sent again")
def _never_probes() -> None:
    replace(LinkSender, "_probe", lambda *_: None)


@MUTANTS.add("nothing is found to be lost before the timeout")
def _finds_no_losses() -> None:
    replace(LinkSender, "_find_lost", lambda *_: None)


@MUTANTS.add("what was only late does not give others more time")
def _learns_no_reordering() -> None:
    replace(LinkSender, "_allow_more_reordering", lambda _: None)


@MUTANTS.add("a link never sends more than it did first", "live.transport.path_model")
def _never_grows() -> None:
    replace(PathModel, "_advance", lambda *_: None)


@MUTANTS.add("losses do not slow a link down", "live.transport.path_model")
def _ignores_losses() -> None:
    replace(PathModel, "lost", lambda *_: None)
