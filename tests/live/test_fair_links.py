"""Links that share a narrow line, with each other and with one that fills the queue as TCP does."""

import pytest

from ordercast.live.transport import path_model
from tests.live.shared_line import FillingFlow, Flow, LinkFlow, SharedLine

RATE, DELAY, QUEUE = 1.25e6, 0.01, 0.1


def shares(*kinds: type[Flow], apart: float = 0.7) -> list[float]:
    """The part of the line that each has, from some seconds after they began."""
    line = SharedLine(RATE, DELAY, QUEUE)
    flows = [kind(line) for kind in kinds]  # type: ignore[call-arg]
    for place, flow in enumerate(flows):
        line.begin(flow, apart * place)
    line.run(4)
    before = [flow.received for flow in flows]
    line.run(6)
    return [(flow.received - had) / 6 / RATE for flow, had in zip(flows, before, strict=True)]


@pytest.mark.parametrize("apart", [0.7, 2.0])
def test_two_have_nearly_the_same(apart: float) -> None:
    first, second = shares(LinkFlow, LinkFlow, apart=apart)
    assert first + second > 0.9
    assert max(first, second) < 1.7 * min(first, second)


@pytest.mark.parametrize("kinds", [(LinkFlow, FillingFlow), (FillingFlow, LinkFlow)])
def test_beside_tcp_a_link_neither_starves_nor_takes_all(kinds: tuple[type[Flow], ...]) -> None:
    found = dict(zip(kinds, shares(*kinds), strict=True))
    assert sum(found.values()) > 0.9
    assert 0.35 < found[LinkFlow] < 0.8


def test_without_the_packets_that_all_have_alike_they_keep_the_shares_with_which_they_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(path_model, "SHARING_PACKETS", 0)
    first, second = shares(LinkFlow, LinkFlow, apart=2.0)
    assert max(first, second) > 2.5 * min(first, second)
