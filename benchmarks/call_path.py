"""The way of one message through the code: calls and files of `live` and `wire`, at the sender, relay and receiver.

    python benchmarks/call_path.py [--order total] [--list]

Three members in one event loop, over sockets of this machine; the second sends one message. Counted are calls of
Python functions, without those inside the protocol's machine: at the sender from `send_nowait` until it returns, at the
relay and at a receiver from the socket's callback that reads the message until it returns.
"""

import argparse
import asyncio
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

import ordercast

PACKAGE = Path(ordercast.__file__).parent
NAMES = ["A", "B", "C"]
ROOTS = {"send_nowait", "_read"}


class Paths:
    """The calls under each root."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self._root: FrameType | None = None

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """A profile function."""
        path = Path(frame.f_code.co_filename)
        if event == "return" and frame is self._root:
            self._root = None
        if event != "call" or not path.is_relative_to(PACKAGE):
            return
        if self._root is None and frame.f_code.co_name in ROOTS:
            self._root = frame
            self.found.append([])
        room = path.relative_to(PACKAGE).parts[0]
        if self._root is not None and room in {"live", "wire"}:
            self.found[-1].append(f"{path.relative_to(PACKAGE)}: {frame.f_code.co_qualname}")


async def paths_of(order: str) -> dict[str, list[str]]:
    """The calls for one message, by what is done with it."""
    joining = (ordercast.join("call path", name=name, members=NAMES, order=order) for name in NAMES)
    groups = await asyncio.gather(*joining)
    for _ in range(3):  # what is done once only is done then
        groups[1].send_nowait(b"first")
        for group in groups:
            await group.receive()
        await asyncio.sleep(0.1)
    paths = Paths()
    sys.setprofile(paths)
    groups[1].send_nowait(b"x" * 64)
    received = [await group.receive() for group in groups]
    sys.setprofile(None)
    assert {message.payload for message in received} == {b"x" * 64}
    await asyncio.gather(*(group.close() for group in groups))
    found: dict[str, list[str]] = {}
    for calls in paths.found:
        if calls[0].endswith("Group.send_nowait"):
            found.setdefault("sent", calls)
            continue
        for datagram in datagrams_in(calls):
            if datagram[0].endswith("_read_one") and any(call.endswith(".pass_on") for call in datagram):
                found.setdefault("relayed", until_passed_on(datagram))
            elif any(call.endswith("Host.receive") for call in datagram):
                found.setdefault("received", datagram)
    return found


def datagrams_in(calls: list[str]) -> list[list[str]]:
    """The calls for each datagram that a callback reads; the next one, or the end of them, is another's."""
    begins = [at for at, call in enumerate(calls) if call.endswith(("_read_one", "drained"))]
    return [calls[start:stop] for start, stop in pairwise(begins)]


def until_passed_on(calls: list[str]) -> list[str]:
    """Without what the relay, which is a member too, does with the message itself."""
    passed = next(at for at, call in enumerate(calls) if call.endswith(".pass_on"))
    own = next(at for at, call in enumerate(calls) if at > passed and call.endswith(".receive_looped_back"))
    return calls[:own]


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", default="total")
    parser.add_argument("--list", action="store_true", help="every call, too")
    asked = parser.parse_args()
    for what, calls in asyncio.run(paths_of(asked.order)).items():
        files = {call.partition(":")[0] for call in calls}
        print(f"{what}: {len(calls)} calls, {len(files)} files")
        if asked.list:
            print("    " + "\n    ".join(calls))


if __name__ == "__main__":
    main()
