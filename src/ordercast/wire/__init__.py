"""The wire format: datagrams, encryption, replay protection, the codec of units, group keys. No socket or clock.

`docs/wire.md` has the format byte by byte. An invalid datagram gives a `Rejection`, never an exception.
"""
