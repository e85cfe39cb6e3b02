"""Traces: their one schema, how events become rows, their writer and their reader. Nothing here judges a run.

The only room that knows Parquet.
"""
