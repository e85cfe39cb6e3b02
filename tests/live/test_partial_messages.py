"""Who joins fetches the beginnings of large messages from any member that has them, over a network that loses parts."""

import asyncio
from random import Random
from types import SimpleNamespace

import pytest

from ordercast.live.host import partial_messages
from ordercast.live.host.message_fragments import Partial
from ordercast.live.host.partial_messages import KEPT, PartialsDonor, PartialsJoiner
from ordercast.wire.control import MAX_PARTS, PartialsPart, PartialsRequest
from tests.live.groups import run

PARTIALS = [Partial(1, 0, to_all=True, size=5000, fragments=[bytes([k]) * 1000 for k in range(5)])]
VIEW = 7


class Joiner:
    """One that joined, and the donors that it asks."""

    def __init__(self, donors: dict[int, PartialsDonor], size: int, loss: float = 0.0) -> None:
        self.loaded: list[Partial] | None = None
        self.lost = False
        self._donors, self._chance, self._loss = donors, Random(1), loss
        view = SimpleNamespace(number=VIEW, nodes=(0, 1, 2))
        welcome = SimpleNamespace(view=view, partials=size, value=SimpleNamespace(stay=0b11))
        self.joiner = PartialsJoiner(welcome, self._ask, self)  # type: ignore[arg-type]

    def _ask(self, request: PartialsRequest, node: int) -> bool:
        for part in self._donors[node].parts(request, 100) if node in self._donors else ():
            if self._chance.random() >= self._loss:
                asyncio.get_running_loop().call_soon(self.joiner.receive, part)
        return node in self._donors

    def partials_loaded(self, partials: list[Partial]) -> None:
        self.loaded = partials

    def partials_lost(self) -> None:
        self.lost = True

    async def end(self) -> None:
        self.joiner.begin()
        while self.loaded is None and not self.lost:
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("loss", [0.0, 0.3])
@pytest.mark.parametrize("node", [0, 1])
def test_all_parts_come_from_a_member_that_is_there(node: int, loss: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_messages, "_AGAIN", 0.001)

    async def test() -> None:
        donor = PartialsDonor()
        size = donor.keep(VIEW, PARTIALS)
        assert size == donor.size(VIEW) > MAX_PARTS * 100
        joiner = Joiner({node: donor}, size, loss)
        await joiner.end()
        assert (joiner.loaded, joiner.lost) == (PARTIALS, False)
        joiner.joiner.receive(PartialsPart(VIEW, size, 0, b"late"))
        assert joiner.loaded == PARTIALS

    run(test)


@pytest.mark.parametrize("there", [True, False])
def test_nobody_has_them_any_more(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_messages, "_AGAIN", 0.001)

    async def test() -> None:
        joiner = Joiner({0: PartialsDonor()} if there else {}, 5000)
        await joiner.end()
        assert (joiner.loaded, joiner.lost) == (None, True)

    run(test)


def test_only_the_last_views_are_kept_and_nothing_costs_nothing() -> None:
    donor = PartialsDonor()
    for view in range(KEPT + 1):
        donor.keep(view, PARTIALS)
    assert (donor.size(0), donor.size(1) > 0) == (0, True)
    assert donor.parts(PartialsRequest(0, 0), 100) == []
    assert donor.parts(PartialsRequest(1, 10**6), 100) == []
    assert donor.keep(50, []) == donor.size(50) == 0
