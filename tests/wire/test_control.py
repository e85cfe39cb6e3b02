"""Control messages: bounded, whatever is put into them."""

from ordercast.wire.control import MAX_REASON_LENGTH, truncated


def test_a_reason_fits_into_a_message_and_shows_that_it_was_cut() -> None:
    longest = "x" * MAX_REASON_LENGTH
    assert truncated("why") == "why"
    assert truncated(longest) == longest
    assert truncated(longest + "y") == "x" * (MAX_REASON_LENGTH - 1) + "…"
