"""What a datagram costs to seal, to open and to reject on one core; and a body of records to join and to split.

Each figure is the best of several runs in this one process; nothing here is a test. Run it on a quiet machine:

    make bench
"""

import platform
import time
from collections.abc import Callable

from command_line import parser_for

from ordercast.wire.datagram import Rejection, pack_records, unpack_records
from ordercast.wire.keys import GroupKeys
from ordercast.wire.seal import seal_for

REPEATS = 5
SIZES = (64, 1_400, 60_000)
RECORD = 100
TAG = 0x0123_4567_89AB_CDEF


def microseconds(rounds: int, work: Callable[[], None]) -> float:
    """Microseconds of a round, in the best of several runs; `work` does all rounds."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best / rounds * 1e6


def seal_and_open(keys: GroupKeys | None, size: int, rounds: int) -> tuple[float, float]:
    """Microseconds to seal, and to open, a datagram with a body of this size."""
    body = bytes(size)
    sender = seal_for("bench", keys)
    datagrams = [sender.seal(0, 1, TAG, counter, body) for counter in range(rounds)]

    def sealing() -> None:
        seal = seal_for("bench", keys).seal
        for counter in range(rounds):
            seal(0, 1, TAG, counter, body)

    def opening() -> None:
        opened = seal_for("bench", keys).open
        for datagram in datagrams:
            assert not isinstance(opened(datagram), Rejection)

    return microseconds(rounds, sealing), microseconds(rounds, opening)


def join_and_split(size: int, rounds: int) -> tuple[float, float]:
    """Microseconds to join records to a body of about this size, and to split it."""
    records = [bytes(min(RECORD, size - 2))] * max(1, size // (RECORD + 2))
    body = pack_records(records)

    def joining() -> None:
        for _ in range(rounds):
            pack_records(records)

    def splitting() -> None:
        for _ in range(rounds):
            unpack_records(body)

    return microseconds(rounds, joining), microseconds(rounds, splitting)


def reject(keys: GroupKeys, rounds: int) -> float:
    """Microseconds to find out that a small datagram with a tag never heard before is forged."""
    forger = seal_for("bench", GroupKeys({1: bytes(32)}))
    forged = [forger.seal(0, 1, TAG + tag, 0, bytes(64)) for tag in range(rounds)]

    def opening() -> None:
        opened = seal_for("bench", keys).open
        for datagram in forged:
            assert opened(datagram) is Rejection.FORGED

    return microseconds(rounds, opening)


def main() -> None:
    """Prints the tables."""
    parser_for(__doc__, "less than a minute").parse_args()
    keys = GroupKeys({1: bytes(range(32))})
    print(f"Python {platform.python_version()} on {platform.machine()}; one sender; best of {REPEATS}; µs each")
    print(f"{'body':>7} {'mode':>7} {'seal':>7} {'open':>7} {'seals/s':>10} {'opens/s':>10}")
    for size in SIZES:
        rounds = 1_000 if size > 10_000 else 20_000
        for mode, chosen in (("plain", None), ("sealed", keys)):
            sealed, opened = seal_and_open(chosen, size, rounds)
            speeds = f"{1e6 / sealed:>10,.0f} {1e6 / opened:>10,.0f}"
            print(f"{size:>7,} {mode:>7} {sealed:>7.2f} {opened:>7.2f} {speeds}", flush=True)
    print(f"forged, 64 bytes, each with another tag: {reject(keys, 2_000):.2f}")
    print(f"\nrecords of {RECORD} bytes (at 64, one record)")
    print(f"{'body':>7} {'join':>7} {'split':>7}")
    for size in SIZES:
        joined, parted = join_and_split(size, 1_000 if size > 10_000 else 20_000)
        print(f"{size:>7,} {joined:>7.2f} {parted:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
