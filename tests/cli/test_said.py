"""What a line of standard input says."""

import pytest

from ordercast.cli.said import Said, said
from ordercast.model.errors import LocalProtocolError


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (b"hello @B !9", Said(b"hello @B !9")),
        (b"", Said(b"")),
        (b" @B", Said(b" @B")),
        (b"@B,C hello there", Said(b"hello there", ("B", "C"))),
        (b"@B", Said(b"", ("B",))),
        (b"@B  two spaces", Said(b" two spaces", ("B",))),
        (b"!9 hello", Said(b"hello", None, 9)),
        (b"!255 @B hello", Said(b"hello", ("B",), 255)),
        (b"@B !0 hello", Said(b"hello", ("B",), 0)),
        (b"\\@B hello", Said(b"@B hello")),
        (b"\\\\hello", Said(b"\\hello")),
        (b"\\", Said(b"")),
        (b"@B \\!9 hello", Said(b"!9 hello", ("B",))),
        (b"\xff\xfe\r", Said(b"\xff\xfe\r")),
        ("@ä x".encode(), Said(b"x", ("ä",))),
    ],
)
def test_a_line_says_to_whom_how_urgent_and_what(line: bytes, meant: Said) -> None:
    assert said(line) == meant


@pytest.mark.parametrize(
    "line", [b"@ x", b"@B,,C x", b"!x", b"!", b"!-1 x", b"!1234 x", b"@B @C x", b"!1 !2 x", b"!\xb2 x"]
)
def test_what_is_of_no_form_is_refused_and_not_sent_to_all(line: bytes) -> None:
    with pytest.raises(LocalProtocolError, match="backslash"):
        said(line)
