"""A log on a disk that is really full."""

import threading
from pathlib import Path

from ordercast.log.writer import Log
from tests.log.logs import GROUP
from tests.small_disk import fill, small_disk


def test_a_full_disk_ends_the_log_and_all_that_was_promised_is_found(tmp_path: Path) -> None:
    told: list[int] = []
    failed = threading.Event()
    with small_disk(tmp_path / "disk") as disk:
        log = Log(
            disk / "log", GROUP, on_durable=lambda position, _: told.append(position), on_failed=lambda _: failed.set()
        )
        fill(disk)
        for number in range(200):
            log.append(0, number, [50_000], bytes(50_000))
        assert failed.wait(10)
        log.close()
        assert "No space left" in str(log.failed)
        (disk / "filler").unlink()
        with Log(disk / "log", GROUP) as again:
            assert again.recovered.position >= (told[-1] if told else 0)
