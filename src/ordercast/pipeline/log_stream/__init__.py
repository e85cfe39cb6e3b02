"""The logs of a live group as a stream and as a table of Spark, and a sink that sends what Spark makes into a group."""
