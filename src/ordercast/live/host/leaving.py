"""How a member leaves: it says so when all its own messages have arrived, or at once."""

from ordercast.live.host.batching import Outbox
from ordercast.live.host.host import Host
from ordercast.model.errors import GroupClosed


class Leaving:
    """How far a member has got that leaves."""

    def __init__(self, name: str, outbox: Outbox) -> None:
        self._name, self._outbox = name, outbox
        self.begun = False
        """The application leaves; own messages may not have arrived everywhere."""
        self.said = False
        """The others are told."""

    def say_if_sent(self, host: Host) -> None:
        """Tells the others, if all of our messages are in every cut and they were not told."""
        if self.begun and not self.said and host.is_drained():
            self.say(host, drain=True)

    def say(self, host: Host, *, drain: bool) -> None:
        """Tells the others; without `drain` what is not sent yet is given up."""
        self.said = True
        if not drain:
            self._outbox.give_up(GroupClosed(f"{self._name} has left the group before the message was sent"))
        host.leave(drain=drain)
