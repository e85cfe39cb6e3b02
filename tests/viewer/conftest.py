"""What tests of the page share: one browser for those of a file."""

from collections.abc import Iterator

import pytest

from tests.viewer.browser import MISSING, Page, browser


@pytest.fixture(scope="module", name="page")
def opened_page() -> Iterator[Page]:
    """One browser for all tests of a file: to start it takes longer than a test."""
    if MISSING:
        pytest.skip(MISSING)
    with browser() as page:
        yield page
