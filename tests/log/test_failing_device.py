"""A device that fails: a library that is loaded before the others makes syncs fail in a real process, on real files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ordercast.log import Log, check, read

LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
int fdatasync(int file) {
    int (*sync)(int) = dlsym(RTLD_NEXT, "fdatasync");
    const char *broken = getenv("DEVICE_IS_BROKEN");
    if (broken && !access(broken, F_OK)) { errno = EIO; return -1; }
    return sync(file);
}
"""
WRITER = """
import os, sys
from ordercast.log import Log
def told(position, _):
    os.write(1, b"%d\\n" % position)
failures = []
log = Log(sys.argv[1], "orders", on_durable=told, on_failed=failures.append)
number = 0
while not failures:
    if log.waiting < 10_000:
        log.append(0, number, [10], b"%010d" % number)
        number += 1
sys.stderr.write(failures[0])
sys.exit(3)
"""


def failing_device(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A path, and an environment in which syncs fail once it exists; skips the test without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "fails.c").write_text(LIBRARY)
    library, broken = tmp_path / "fails.so", tmp_path / "broken"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "fails.c", "-ldl"], check=True)  # noqa: S603
    return broken, {**os.environ, "LD_PRELOAD": str(library), "DEVICE_IS_BROKEN": str(broken)}


def test_what_was_told_before_a_device_failed_is_there(tmp_path: Path) -> None:
    broken, environment = failing_device(tmp_path)
    folder = tmp_path / "log"
    command = [sys.executable, "-c", WRITER, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as writer:  # noqa: S603
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(5)]
        broken.touch()
        rest, error = writer.communicate(timeout=30)
    told += [int(line) for line in rest.split()]
    assert writer.returncode == 3
    assert "the disk of the log failed: Input/output error; nothing more is written to it" in error
    assert told == sorted(told)
    found = [message.payload for message in read(folder)]
    assert found[: told[-1]] == [b"%010d" % number for number in range(told[-1])]
    with Log(folder, "orders") as log:
        assert log.next >= told[-1]
        log.append(0, 0, [5], b"again")
    assert [message.payload for message in read(folder)][-1] == b"again"
    assert not check(folder).damage
