"""Audits of traces of any size: in this process, on Spark, or while the trace grows."""
