"""Soak tests: random runs on Spark, each audited, for as long as wanted."""
