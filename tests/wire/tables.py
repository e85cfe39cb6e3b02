"""How much the tables of a seal hold."""

from ordercast.wire.replay_window import ReplayWindows


def remembered(seal: object) -> int:
    """The largest number of senders and tags that any of its tables has."""
    tables = vars(seal)
    windows: ReplayWindows = tables["_windows"]
    return max(len(tables.get("_ciphers", ())), len(windows._windows) + len(windows._recent))
