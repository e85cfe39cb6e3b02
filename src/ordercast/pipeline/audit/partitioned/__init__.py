"""The audit of a long run in partitions, each by a task of its own.

In the order in which they are used: `long_run` (the run and its tasks), `row_groups` and `row_group_index` (where its
events are), `cut_points` (where it is partitioned), `partition_audit` (one partition, by one task), `partition_results`
and `partition_overlaps` (all of them together), `log_comparison` (for orders by priority), `explain` (the violations of
partitions that did not pass); `audit` has the procedure, `tasks` how tasks are run in other processes.
"""
