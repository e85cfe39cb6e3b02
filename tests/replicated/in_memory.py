"""Objects of several members in one event loop, without a group: commands are applied by all in the next turn.

What waits in the blocks is tested here: as in a live group, but in a millisecond.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from ordercast import GroupClosed
from ordercast.replicated import Call, Replicated
from ordercast.replicated.objects import Binding, CommandId
from ordercast.replicated.replica import Replica
from tests.replicated.alone import MEMBERS, Alone


class Host:
    """What objects of one member call."""

    def __init__(self, group: "InMemory", name: str) -> None:
        self.group, self.name = group, name

    def submit(self, hosted: Any, name: str, values: tuple[Any, ...]) -> Call[Any]:
        del hosted
        found: Call[Any] = Call()
        self.group.send(self.name, name, values, found)
        return found

    def next_id(self, hosted: Any, name: str) -> CommandId:
        raise NotImplementedError

    async def fresh(self, hosted: Any) -> None:
        del hosted
        await self.group.turns()


class InMemory(Alone):
    """Made within the event loop."""

    def __init__(self, make: Callable[[], Replicated], members: tuple[str, ...] = MEMBERS) -> None:
        super().__init__(make, members, lambda name: Host(self, name))
        self.away: dict[str, Replica] = {}
        self.sessions = {name: session + 1 for session, name in enumerate(members)}

    def send(self, sender: str, name: str, values: tuple[Any, ...], call: Call[Any]) -> None:
        """One command of one member."""
        if sender in self.away:
            raise GroupClosed("it has left")
        payload = self.payload(sender, name, *values)
        asyncio.get_running_loop().call_soon(self._deliver, sender, payload, call)

    def _deliver(self, sender: str, payload: bytes, call: Call[Any]) -> None:
        if sender in self.away:
            self._finish(call, GroupClosed("it has left"), None)
            return
        for name in list(self.replicas):
            result = self.apply(name, sender, payload)
            assert result is not None, "it is the next one"
            if name == sender:
                self._finish(call, *result)

    def _finish(self, call: Call[Any], error: Exception | None, value: Any) -> None:
        if call.done():
            return
        if error is not None:
            call.set_exception(error)
        else:
            call.set_result(value)

    def leaves(self, name: str) -> None:
        """A view without it; it may come back."""
        self.away[name] = self.replicas[name]
        super().leaves(name)

    def returns(self, name: str) -> None:
        """It is given the state of another one, and is the same process as before."""
        rest = next(iter(self.replicas.values()))
        self.replicas[name] = self.away.pop(name)
        self.replicas[name].load(rest.save())
        for replica in self.replicas.values():
            replica.enter_view(rest.view + 1, tuple(self.replicas))
            replica.hello(name, self.sessions[name])

    def ends(self, name: str) -> None:
        """It leaves for good."""
        self.leaves(name)
        self.binding(name, self.away[name]).end(GroupClosed("it has left"))

    def binding(self, name: str, replica: Replica | None = None) -> Binding:
        """What an object has besides its state."""
        return (replica or self.replicas[name]).hosted[""].binding

    async def turns(self, count: int = 5) -> None:
        """What was sent is applied, and who waited for it goes on."""
        for _ in range(count):
            await asyncio.sleep(0)
