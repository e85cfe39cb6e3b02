"""The whole state of a small machine as a value, and back."""

from ordercast.model.state import Snapshot


class WholeState:
    """A machine whose attributes are its state: values, lists of values, and parts of the same kind."""

    def snapshot(self) -> Snapshot:
        """The whole state; equal states give equal snapshots."""
        return tuple(
            tuple(value) if isinstance(value, list) else value.snapshot() if isinstance(value, WholeState) else value
            for value in vars(self).values()
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Makes the state what it was when the snapshot was taken."""
        for (name, now), then in zip(list(vars(self).items()), snapshot, strict=True):
            if isinstance(now, WholeState):
                assert isinstance(then, tuple)
                now.restore(then)
            elif isinstance(now, list):
                assert isinstance(then, tuple)
                setattr(self, name, list(then))
            else:
                setattr(self, name, then)
