"""Bytes and values: datagrams, how they are sealed and opened, and group keys. No socket, clock or chance in it.

`docs/wire.md` has the format byte by byte. What the network hands us wrong is a `Rejection`, never an exception.
"""
