"""A member that hands batches from outside to its group, and answers when they are on the disks of a majority."""

import asyncio

import msgspec

from ordercast.gateway.deduplication import Batch, Batches, encode_batch
from ordercast.live.events import Message
from ordercast.live.group import Group
from ordercast.model.errors import ConfigError, LocalProtocolError


class Committed(msgspec.Struct, frozen=True):
    """A batch is in the order."""

    position: int
    """That of its message; of a later batch of the same source, if there is one."""
    again: bool
    """It was there before this call."""
    last: int
    """The number of the last batch of its source that is in the order: of a later one if it is larger."""


class Gateway:
    """Used inside the event loop of its group.

    The application hands it every message that it is delivered, by `take`. Any number of members may be gateways, and
    the same batch may be sent by several of them: the group has it once.
    """

    def __init__(self, group: Group, batches: Batches) -> None:
        """`batches`: what this member remembers, up to the next message that it is delivered."""
        self._group, self._batches = group, batches
        self._waiting: dict[tuple[str, int], asyncio.Future[None]] = {}
        self._sending: dict[tuple[str, int], asyncio.Task[Committed]] = {}
        self.sent = 0
        """Batches that this member has sent."""

    def __repr__(self) -> str:
        return f"<Gateway {self._group.me} of {self._group.name!r}: {self.sent} batches sent>"

    @property
    def max_batch_size(self) -> int:
        """The maximum size of a batch in bytes, with some for each row."""
        return self._group.max_message_size

    def take(self, message: Message) -> Batch | bytes | None:
        """As `Batches.take`; whoever waits for the batch is told."""
        found = self._batches.take(message.payload, message.position, message.sender)
        if not isinstance(found, bytes) and self._waiting:
            self._wake()
        return found

    def _wake(self) -> None:
        """A batch came, from this gateway or another: whoever waits for it, or for one before it, is told."""
        for (source, number), future in self._waiting.items():
            if self._has(source, number) and not future.done():
                future.set_result(None)

    def _has(self, source: str, number: int) -> bool:
        last = self._batches.last(source)
        return last is not None and number <= last[0]

    async def commit(self, batch: Batch) -> Committed:
        """Returns when the batch is in the order, and on the disks of a majority.

        A second call for the same batch waits for the first. Raises `LocalProtocolError` for a batch that does not fit
        into a message, and `GroupError` if the group ended: then it may be in the order, and is to be sent again.
        """
        key = batch.source, batch.number
        if key not in self._sending:
            again = self._has(*key)
            if again:  # it need not be on the disks yet: what is sent behind it, and is dropped everywhere, tells when
                batch = Batch(*key, ())
            self._sending[key] = asyncio.ensure_future(self._send(batch, again=again))
            self._sending[key].add_done_callback(lambda _: self._sending.pop(key))
        return await asyncio.shield(self._sending[key])

    async def _send(self, batch: Batch, *, again: bool) -> Committed:
        payload = encode_batch(batch)
        if len(payload) > self.max_batch_size:
            raise LocalProtocolError(
                f"batch {batch.number} has {len(batch.rows)} rows and {len(payload)} bytes, and a message of this "
                f"group has at most {self.max_batch_size}: make smaller batches (maxOffsetsPerTrigger)"
            )
        arrived = self._waiting[batch.source, batch.number] = asyncio.get_running_loop().create_future()
        self.sent += not again
        self._wake()  # another gateway may have sent it since this one was asked
        try:
            receipt = await self._group.send(payload)
            await receipt.durable()
            await arrived
        except ConfigError as error:
            raise LocalProtocolError(str(error)) from error
        finally:
            self._waiting.pop((batch.source, batch.number), None)
        last = self._batches.last(batch.source)
        assert last is not None, "its batch arrived"
        return Committed(last[1], again=again, last=last[0])
