"""PriTO and PriO: total order by priority, in runs that end in time."""
