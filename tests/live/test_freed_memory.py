"""Freed memory stays with the process of a member."""

import subprocess
import sys

import pytest

_PROGRAM = """
import resource, sys
from ordercast.live.host.freed_memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def use():
    packets = [bytes(range(256)) * 240 for _ in range(100)]
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Pages that were found anew while megabytes of packets come and go, after the first of them."""
    run = subprocess.run(  # noqa: S603 (our own program)
        [sys.executable, "-c", _PROGRAM, how], capture_output=True, text=True, check=True
    )
    return int(run.stdout)


def test_pages_are_not_found_anew_for_each_packet() -> None:
    given_back = faults("given back")
    if given_back < 5000:
        pytest.skip("this C library keeps them by itself")
    assert faults("kept") < given_back / 10
