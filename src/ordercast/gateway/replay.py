"""Batches in a durable log: for a member that is started again, and for whoever reads a log without a group."""

from collections.abc import Iterator
from pathlib import Path

from ordercast.gateway.deduplication import MAGIC, Batch, Batches
from ordercast.log import read
from ordercast.log.segments import segment_names
from ordercast.model.errors import LogError


def batches_in(folder: Path | str) -> Iterator[Batch]:
    """Each batch in a log once, in the order of the group, from the oldest message on."""
    known = Batches()
    for message in read(folder):
        if message.payload.startswith(MAGIC):
            found = known.take(message.payload, message.position, message.sender)
            if isinstance(found, Batch):
                yield found


def recover(batches: Batches, folder: Path | str, below: int) -> None:
    """Remembers the batches that a member had before it was started again: those of its log, below a position.

    Where an application goes on with its log, that position is `group.starts_at`. Raises `LogError` if the beginning of
    the log was dropped: then `Batches.save` belongs into the application's state.
    """
    path = Path(folder)
    if below == 0 or not segment_names([each.name for each in path.iterdir()] if path.is_dir() else []):
        return
    first = None
    for message in read(path, stop=below):
        if first is None and message.position > 0:
            raise LogError(
                f"the log in {path} begins at position {message.position}, and which batches came before it is not "
                "known: keep Batches.save() in the application's state, or the whole log"
            )
        first = message.position
        if message.payload.startswith(MAGIC):
            batches.take(message.payload, message.position, message.sender)
