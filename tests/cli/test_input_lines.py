"""What a line of standard input says."""

import pytest

from ordercast.cli.shared.input_lines import InputLine, parse_line
from ordercast.model.errors import LocalProtocolError


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (b"hello @B !9", InputLine(b"hello @B !9")),
        (b"", InputLine(b"")),
        (b" @B", InputLine(b" @B")),
        (b"@B,C hello there", InputLine(b"hello there", ("B", "C"))),
        (b"@B", InputLine(b"", ("B",))),
        (b"@B  two spaces", InputLine(b" two spaces", ("B",))),
        (b"!9 hello", InputLine(b"hello", None, 9)),
        (b"!255 @B hello", InputLine(b"hello", ("B",), 255)),
        (b"@B !0 hello", InputLine(b"hello", ("B",), 0)),
        (b"\\@B hello", InputLine(b"@B hello")),
        (b"\\\\hello", InputLine(b"\\hello")),
        (b"\\", InputLine(b"")),
        (b"@B \\!9 hello", InputLine(b"!9 hello", ("B",))),
        (b"\xff\xfe\r", InputLine(b"\xff\xfe\r")),
        ("@ä x".encode(), InputLine(b"x", ("ä",))),
    ],
)
def test_a_line_says_to_whom_how_urgent_and_what(line: bytes, meant: InputLine) -> None:
    assert parse_line(line) == meant


@pytest.mark.parametrize(
    "line", [b"@ x", b"@B,,C x", b"!x", b"!", b"!-1 x", b"!1234 x", b"@B @C x", b"!1 !2 x", b"!\xb2 x"]
)
def test_what_is_of_no_form_is_refused_and_not_sent_to_all(line: bytes) -> None:
    with pytest.raises(LocalProtocolError, match="backslash"):
        parse_line(line)
