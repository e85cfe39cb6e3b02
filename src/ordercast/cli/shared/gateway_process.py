"""A gateway as a process: joins, remembers the batches of its log, and answers until it is stopped."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGTERM
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from ordercast.gateway import Batches, Gateway, recover
from ordercast.gateway.http import GatewayServer
from ordercast.live.join import Joining
from ordercast.model.errors import ConfigError, GroupError, reason_of

if TYPE_CHECKING:
    from ordercast.live.group import Group


class GatewayProcess:
    """A member, from joining to an exit status."""

    def __init__(self, log: Path, address: tuple[str, int], token: str | None, tls: SSLContext | None) -> None:
        self._log, self._address, self._token, self._tls = log, address, token, tls
        self._stopped = False

    def say(self, sentence: str) -> None:
        """For people."""
        with suppress(OSError):
            print(f"ordercast: {sentence}", file=sys.stderr, flush=True)  # noqa: T201 (for people)

    async def run(self, joining: Joining) -> int:
        """The exit status."""
        task = asyncio.current_task()
        assert task is not None
        for signal in (SIGINT, SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signal, self._stop, task)
        group = None
        try:
            group = await joining
            await self._take_part(group)
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        except GroupError as error:
            self.say(str(error))
            return 1
        finally:
            if group is not None:
                with suppress(GroupError):
                    await group.leave(_LEAVES_WITHIN)
        return 0

    def _stop(self, task: "asyncio.Task[Any]") -> None:
        self._stopped = True
        task.cancel()

    async def _take_part(self, group: "Group") -> None:
        batches = Batches()
        await asyncio.to_thread(recover, batches, self._log, group.starts_at)
        gateway = Gateway(group, batches)
        host, port = self._address
        try:
            server = await GatewayServer(gateway, group, self._token).serve(host, port, self._tls)
        except OSError as error:
            raise ConfigError(f"--listen: cannot listen at {host}:{port}: {reason_of(error)}") from error
        found = server.sockets[0].getsockname()
        shown = f"[{found[0]}]" if ":" in found[0] else found[0]
        others = ", ".join(name for name in group.members if name != group.me) or "nobody else"
        self.say(f"{group.me} is in the group {group.name} with {others}")
        self.say(f"takes batches at {'http' if self._tls is None else 'https'}://{shown}:{found[1]}/batches")
        try:
            async for some in group.batches():
                for message in some:
                    gateway.take(message)
        finally:
            server.close()


_LEAVES_WITHIN = 10.0  # seconds
