"""Traces: their one schema, their writer and their reader. Nothing here interprets what an event means.

The only room that knows Parquet.
"""
