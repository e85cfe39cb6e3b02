"""Objects that only some members hold: how one of them that joins gets the state.

The state that ordercast transfers is that of a donor, which may hold other objects. So the oldest holder sends the
state of a shard as a message to the one that joined, as it is at the view; commands that arrive before are held back.
"""

from collections.abc import Callable

import msgspec

from ordercast.live.events import View
from ordercast.model.errors import JoinError
from ordercast.replicated.frames import ShardState, encode, with_room
from ordercast.replicated.replica import HostedState, Replica


class Shards:
    """What this member lacks, and what it gives to others."""

    def __init__(self, replica: Replica) -> None:
        self._replica, self._me = replica, ""
        self.lacking: dict[str, int] = {}
        """Objects whose state is not here yet, and the view from which on commands follow it."""
        self._held_back: dict[str, list[Callable[[], None]]] = {}
        self._new: set[str] = set()
        """Members that have joined, and may not have got their shards."""

    def begin(self, me: str, *, joined: bool) -> None:
        """The member opens the group, or (`joined`) has to be given its shards."""
        self._me = me
        self._held_back.clear()
        for name, hosted in self._replica.hosted.items():
            if hosted.on is not None:
                hosted.held = me in hosted.on and not joined
                if me in hosted.on and joined:
                    self.lacking[name] = -1

    def hold_back(self, name: str, apply: Callable[[], None]) -> None:
        """What comes for an object whose state is not here yet is applied after it."""
        if name in self.lacking:
            self._held_back.setdefault(name, []).append(apply)

    def arrived(self, sent: ShardState) -> None:
        """A state; what was held back follows."""
        name = sent.object_name
        if self.lacking.get(name) != sent.view:
            return
        self._replica.hosted[name].load(with_room(msgspec.msgpack.Decoder(HostedState).decode, sent.state))
        del self.lacking[name]
        for apply in self._held_back.pop(name, []):
            apply()

    def said_hello(self, member: str) -> None:
        """It has its shards."""
        self._new.discard(member)

    def view_changed(self, view: View) -> list[tuple[str, ShardState]]:
        """Whom this member gives which shard, as it is at this view. Over a view a transfer begins anew."""
        self._new = (self._new | set(view.joined)) & set(view.members)
        found: list[tuple[str, ShardState]] = []
        self._held_back.clear()
        for name, hosted in self._replica.hosted.items():
            if hosted.on is None:
                continue
            holders = [each for each in view.together if each in hosted.on and each not in self._new]
            if name in self.lacking:
                self.lacking[name] = view.number
                if not holders:
                    raise JoinError(f"no other member holds {name!r} any more: its state is lost")
            elif holders and holders[0] == self._me and hosted.held:
                state = with_room(encode, hosted.state())
                found += [(each, ShardState(name, view.number, state)) for each in sorted(self._new & hosted.on)]
        return found
