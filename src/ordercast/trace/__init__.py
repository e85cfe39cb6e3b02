"""Traces: their schema, the recorders that turn events into rows, writers and a reader. Nothing here audits a run.

The only package, besides the pipeline, that uses Parquet.
"""
