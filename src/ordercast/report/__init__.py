"""The report of an evaluation: plots and a page, from stored results alone."""

from ordercast.report.page import PAGE, build

__all__ = ["PAGE", "build"]
