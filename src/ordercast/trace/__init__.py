"""Traces: their schema, the recorders that turn events into rows, writers and a reader. Nothing here judges a run.

The only package, besides the pipeline, that uses Parquet.
"""
