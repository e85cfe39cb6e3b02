"""From stored results to plots and a page; no Spark, no simulation."""

from ordercast.report.page import PAGE, build

__all__ = ["PAGE", "build"]
