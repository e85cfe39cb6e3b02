"""Semantic mutants of `log`: each rule of recovery switched off, and what keeps the log bounded and readable."""

from collections.abc import Callable
from typing import Any

import msgspec

from ordercast.log import (
    damage,
    direct,
    manifest,
    published_end,
    reader,
    recovery,
    retention,
    segments,
    snapshots,
    whole_files,
    writer,
)
from ordercast.log import disk as disk_module
from ordercast.log import format as log_format
from ordercast.log.direct import DirectWriter, NotDirectError
from ordercast.log.files import LogFiles
from ordercast.log.format import NO_HASH, FrameBuilder
from ordercast.log.segments import Scan
from ordercast.log.writer import Log
from ordercast.model.errors import LogDamaged, LogError
from tests.mutations.mutation import Mutants, replace, wrap

MUTANTS = Mutants("log.recovery")
Method = Callable[..., Any]


@MUTANTS.add("rule 1: a file gets its name before it is synced", "log.whole_files")
def _renames_first() -> None:
    def changed(disk: Any, name: str, parts: list[bytes]) -> int:
        data = b"".join(parts)
        file = disk.create(f".{name}")
        disk.rename(f".{name}", name)
        disk.sync()
        disk_module.write_all(file, 0, data)
        file.sync()
        return len(data)

    replace(whole_files, "write_durably", changed)


@MUTANTS.add("rule 1: the folder is not synced after a rename", "log.whole_files")
def _does_not_sync_the_folder() -> None:
    def changed(disk: Any, name: str, parts: list[bytes]) -> int:
        data = b"".join(parts)
        file = disk.create(f".{name}")
        disk_module.write_all(file, 0, data)
        file.sync()
        disk.rename(f".{name}", name)
        return len(data)

    replace(whole_files, "write_durably", changed)


@MUTANTS.add("rule 1: unfinished files stay")
def _keeps_unfinished_files() -> None:
    replace(recovery, "_remove_unfinished", lambda *_: None)


@MUTANTS.add("rule 2: a missing segment is not noticed", "log.segments")
def _does_not_follow_the_chain() -> None:
    replace(segments, "chain_problem", lambda *_: None)


@MUTANTS.add("rule 3: the position of a frame is not looked at", "log.segments")
def _takes_any_position() -> None:
    def around(wrong_place: Method) -> Method:
        def changed(self: Scan, frame: Any) -> Any:
            self.next = frame.header.first
            return wrong_place(self, frame)

        return changed

    wrap(Scan, "_wrong_place", around)


@MUTANTS.add("rule 3: the hash of a frame is not looked at", "log.segments")
def _takes_any_hash() -> None:
    def around(wrong_place: Method) -> Method:
        def changed(self: Scan, frame: Any) -> Any:
            self.hash = frame.header.hash
            return wrong_place(self, frame)

        return changed

    wrap(Scan, "_wrong_place", around)


@MUTANTS.add("rule 3: checksums begin without the salt", "log.format")
def _has_no_salt() -> None:
    def around(read_frame: Method) -> Method:
        return lambda data, at, *_: read_frame(data, at, 0)

    wrap(log_format, "read_frame", around)

    def initialise(made: Method) -> Method:
        return lambda self, _, first, hash_: made(self, 0, first, hash_)

    wrap(FrameBuilder, "__init__", initialise)


@MUTANTS.add("rule 3: payloads are not verified", "log.format")
def _does_not_verify_payloads() -> None:
    replace(log_format, "_payloads_are_right", lambda *_: True)


@MUTANTS.add("rule 4: reading goes on behind a frame that is not good", "log.segments")
def _reads_on() -> None:
    def changed(self: Scan) -> Any:
        while self.offset < len(self._data):
            frame = log_format.read_frame(self._data, self.offset - self._base, self._salt)
            if isinstance(frame, str):
                self.problem = frame
                self.offset += 8
                continue
            self._pass(frame)
            yield self.offset - frame.header.size, frame

    replace(Scan, "frames", changed)


@MUTANTS.add("rule 5: what is not good is always a tail")
def _never_finds_damage() -> None:
    replace(recovery, "require_not_promised", lambda *_: None)


@MUTANTS.add("rule 5: a whole frame behind one that is not good is always damage")
def _calls_tails_damage() -> None:
    def around(headers: Method) -> Method:
        def changed(*arguments: Any) -> Any:
            for offset, header in headers(*arguments):
                yield offset, msgspec.structs.replace(header, durable=2**60)

        return changed

    wrap(recovery, "later_headers", around)


@MUTANTS.add("rule 5: the published end is not looked at")
def _ignores_the_published_end() -> None:
    def around(require: Method) -> Method:
        return lambda segment, scan, _: require(segment, scan, None)

    wrap(recovery, "require_not_promised", around)


@MUTANTS.add("rule 6: the tail is not cut off, and writing goes on behind it")
def _appends_at_the_end_of_the_file() -> None:
    def changed(disk: Any, file: Any, segment: Any, scan: Scan) -> None:
        del disk, file, segment
        scan.offset = len(scan.data)

    replace(recovery, "_cut", changed)


@MUTANTS.add("rule 6: the tail is not cut off, and is written over")
def _leaves_the_tail() -> None:
    replace(recovery, "_cut", lambda *_: None)


@MUTANTS.add("rule 6: a tail that may be damage is not set aside")
def _loses_tails() -> None:
    def around(cut: Method) -> Method:
        def changed(disk: Any, file: Any, segment: Any, scan: Scan) -> Any:
            scan.problem = "cut"
            return cut(disk, file, segment, scan)

        return changed

    wrap(recovery, "_cut", around)


@MUTANTS.add("rule 7: what no mark covers is not written again")
def _trusts_what_is_shown() -> None:
    replace(recovery, "_write_again", lambda *_: None)


@MUTANTS.add("rule 7: the end is synced again instead of written again")
def _syncs_what_is_clean() -> None:
    replace(recovery, "_write_again", lambda file, *_: file.sync())


@MUTANTS.add("rule 7: the name of an empty segment is not written again", "log.files")
def _trusts_names() -> None:
    def around(start: Method) -> Method:
        def changed(self: LogFiles, found: Any, begin: Any) -> None:
            if found is not None:
                found = msgspec.structs.replace(found, empty=False)
            start(self, found, begin)

        return changed

    wrap(LogFiles, "_start", around)


@MUTANTS.add("rule 8: after an error it is tried again", "log.files")
def _tries_again() -> None:
    def changed(self: LogFiles, call: Method) -> None:
        for attempt in range(3):
            try:
                call()
            except OSError as error:
                if attempt == 2:
                    raise LogError(str(error)) from error
            else:
                return

    replace(LogFiles, "_attempt", changed)


@MUTANTS.add("rule 8: an error is told and forgotten", "log.files")
def _forgets_errors() -> None:
    def around(fail: Method) -> Method:
        def changed(self: LogFiles, error: OSError) -> LogError:
            found: LogError = fail(self, error)
            self.failed = None
            return found

        return changed

    wrap(LogFiles, "fail", around)


@MUTANTS.add("rule 9: positions are durable when they are written", "log.files")
def _promises_what_is_written() -> None:
    def changed(self: LogFiles) -> None:
        self._durable_offset, self.durable, self.durable_hash = self._offset, self.next, self.hash
        self._publish()

    replace(LogFiles, "sync", changed)


@MUTANTS.add("rule 9: the mark of a frame covers the frame itself", "log.files")
def _marks_too_much() -> None:
    def around(write: Method) -> Method:
        def changed(self: LogFiles, frame: Method) -> None:
            before = self._durable_offset
            self._durable_offset = self._offset + 100_000
            try:
                write(self, frame)
            finally:
                self._durable_offset = max(before, 0)

        return changed

    wrap(LogFiles, "_write", around)


@MUTANTS.add("rule 10: opening verifies all segments")
def _verifies_all() -> None:
    def around(scanned: Method) -> Method:
        def changed(disk: Any, segment: Any, *limit: Any) -> Scan:
            for each in segments.read_segments(disk, 0)[:-1]:
                if scanned(disk, each).problem is not None:
                    raise LogDamaged(each.name)
            found: Scan = scanned(disk, segment, *limit)
            return found

        return changed

    wrap(recovery, "scanned", around)


@MUTANTS.add("the running hash does not continue", "log.format")
def _hashes_frames() -> None:
    def around(packets: Method) -> Method:
        def changed(self: FrameBuilder, *arguments: Any, **more: Any) -> Any:
            found = packets(self, *arguments, **more)
            self.hash = NO_HASH
            return found

        return changed

    wrap(FrameBuilder, "packets", around)


@MUTANTS.add("a segment does not repeat the view", "log.files")
def _forgets_the_view() -> None:
    def around(begin: Method) -> Method:
        def changed(self: LogFiles, place: Any, *, after_gap: bool) -> None:
            context = msgspec.structs.replace(place.context, view=log_format.View())
            begin(self, msgspec.structs.replace(place, context=context), after_gap=after_gap)

        return changed

    wrap(LogFiles, "_begin_segment", around)


@MUTANTS.add("segments are dropped that no snapshot has", "log.retention")
def _drops_too_much() -> None:
    def around(drop: Method) -> Method:
        def changed(found: Any, snapshot: Any, how: Any, now: int, below: int) -> Any:
            return drop(found, snapshot, msgspec.structs.replace(how, needs_snapshot=False), now, below)

        return changed

    wrap(retention, "segments_to_drop", around)


@MUTANTS.add("nothing is ever dropped", "log.retention")
def _drops_nothing() -> None:
    replace(retention, "segments_to_drop", lambda *_: 0)


@MUTANTS.add("files are removed before the manifest says so", "log.files")
def _removes_first() -> None:
    def changed(disk: Any, new: Any) -> None:
        disk.remove(manifest.NAME) if manifest.NAME in disk.names() else None
        whole_files.write_durably(disk, manifest.NAME, [manifest.encode(new)])

    replace(manifest, "write_manifest", changed)


@MUTANTS.add("the manifest is not written when segments are dropped", "log.manifest")
def _has_no_manifest() -> None:
    replace(manifest, "write_manifest", lambda *_: None)


@MUTANTS.add("a snapshot is not synced", "log.snapshots")
def _does_not_sync_snapshots() -> None:
    def around(write: Method) -> Method:
        class Disk:
            def __init__(self, disk: Any) -> None:
                self._disk = disk

            def __getattr__(self, name: str) -> Any:
                return getattr(self._disk, name)

            def create(self, name: str) -> Any:
                file = self._disk.create(name)
                file.sync = lambda: None
                return file

        return lambda disk, place, state, time: write(Disk(disk), place, state, time)

    wrap(snapshots, "write_snapshot", around)


@MUTANTS.add("readers read what is not on the disk", "log.reader")
def _reads_what_is_not_durable() -> None:
    replace(reader, "durable_limit", lambda disk, segment, _: disk.size(segment.name))


@MUTANTS.add("the end is published before it is on the disk", "log.published_end")
def _publishes_too_early() -> None:
    def around(write: Method) -> Method:
        def changed(self: LogFiles, frame: Method) -> None:
            write(self, frame)
            end = published_end.PublishedEnd(self.segments[-1].first, self._offset, self.next)
            self._attempt(lambda: self._publisher.publish(end))

        return changed

    wrap(LogFiles, "_write", around)


@MUTANTS.add("the thread syncs nothing", "log.writer")
def _never_syncs() -> None:
    def around(made: Method) -> Method:
        def changed(self: Log, *arguments: Any, **more: Any) -> None:
            made(self, *arguments, **more)
            self._files.sync = lambda: None  # type: ignore[method-assign] # on purpose

        return changed

    wrap(Log, "__init__", around)


@MUTANTS.add("a failure of the disk is not told", "log.writer")
def _does_not_tell_failures() -> None:
    def around(made: Method) -> Method:
        return lambda self, *arguments, **more: made(self, *arguments, **{**more, "on_failed": None})

    wrap(Log, "__init__", around)


@MUTANTS.add("all that waits is one frame", "log.writer")
def _gathers_without_limit() -> None:
    writer.MAX_FRAME = 1 << 40


@MUTANTS.add("no write passes the page cache by", "log.disk")
def _caches_all() -> None:
    setattr(disk_module, "MIN_SIZE", 1 << 40)  # noqa: B010 (it is not exported)


@MUTANTS.add("a large write ends with its last whole page", "log.direct")
def _forgets_the_rest_of_a_page() -> None:
    def around(write: Method) -> Method:
        return lambda self, file, start, data: (
            len(data) if file == self._cached and start % 4096 == 0 else write(self, file, start, data)
        )

    wrap(DirectWriter, "_write", around)


@MUTANTS.add("a large write begins with its first whole page", "log.direct")
def _forgets_the_beginning_of_a_page() -> None:
    def around(write: Method) -> Method:
        return lambda self, file, start, data: len(data) if start % 4096 else write(self, file, start, data)

    wrap(DirectWriter, "_write", around)


@MUTANTS.add("a file system that writes nothing directly fails the log", "log.direct")
def _insists_on_direct_writes() -> None:
    setattr(direct, "NotDirectError", OSError)  # noqa: B010 (it is the module's own name that counts)


@MUTANTS.add("an error of the disk is taken for a file system that writes nothing directly", "log.direct")
def _hides_errors() -> None:
    def around(write: Method) -> Method:
        def changed(self: DirectWriter, start: int, parts: list[bytes]) -> Any:
            try:
                return write(self, start, parts)
            except OSError as error:
                raise NotDirectError from error

        return changed

    wrap(DirectWriter, "write", around)


@MUTANTS.add("damage: the note that says so is not written", "log.damage")
def _forgets_that_it_forgot() -> None:
    replace(damage, "write_durably", lambda *_: 0)


@MUTANTS.add("damage: only the damaged segment is set aside", "log.damage")
def _leaves_later_segments() -> None:
    def around(aside: Method) -> Method:
        return lambda disk, name: [] if name.isdigit() else aside(disk, name)

    wrap(damage, "_set_aside", around)


@MUTANTS.add("damage: snapshots are not looked at", "log.damage")
def _keeps_snapshots() -> None:
    replace(damage, "_snapshots_aside", lambda *_: [])


@MUTANTS.add("damage: the published end stays", "log.damage")
def _keeps_the_published_end() -> None:
    setattr(damage, "PUBLISHED_END", "another name")  # noqa: B010 (it is not exported)


@MUTANTS.add("damage: segments that do not follow each other are kept", "log.damage")
def _keeps_what_does_not_follow() -> None:
    replace(damage, "_follows", lambda *_: True)
