"""The partitioned audit: a long run is cut into partitions, each audited by itself, and then compared."""
