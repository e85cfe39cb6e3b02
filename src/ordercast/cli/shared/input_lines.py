r"""The lines of standard input of `ordercast node`: destinations, priority and text of a message.

    text                 to all members
    @B,C text            to B and C
    !9 text              with priority 9
    @B,C !9 text         both, in either order
    \@text               a backslash in front: the rest is sent as it is

Text is any bytes. A line that begins with @ or ! and has another form is rejected rather than sent to all.
"""

from typing import NamedTuple

from ordercast.model.errors import LocalProtocolError

_TO, _PRIORITY, _LITERAL = b"@", b"!", b"\\"
_HINT = "; begin the line with a backslash to send it as it is"


class InputLine(NamedTuple):
    """A message to be sent."""

    text: bytes
    to: tuple[str, ...] | None = None
    """None: all members."""
    priority: int = 0


def parse_line(line: bytes) -> InputLine:
    """Reads a line, without its end. Raises `LocalProtocolError` if it has none of the forms."""
    to: tuple[str, ...] | None = None
    priority: int | None = None
    while line[:1] in {_TO, _PRIORITY}:
        word, _, rest = line.partition(b" ")
        if line[:1] == _TO:
            if to is not None:
                raise LocalProtocolError(f"it has destinations twice{_HINT}")
            to = _names(word[1:])
        else:
            if priority is not None:
                raise LocalProtocolError(f"it has two priorities{_HINT}")
            priority = _number(word[1:])
        line = rest
    return InputLine(line[1:] if line[:1] == _LITERAL else line, to, priority or 0)


def _names(text: bytes) -> tuple[str, ...]:
    names = tuple(text.decode(errors="replace").split(","))
    if not all(names):
        raise LocalProtocolError(f"@ must be followed by names, separated by commas{_HINT}")
    return names


def _number(text: bytes) -> int:
    if not (text.isdigit() and len(text) <= 3):
        raise LocalProtocolError(f"! must be followed by a priority, 0 to 255{_HINT}")
    return int(text)
