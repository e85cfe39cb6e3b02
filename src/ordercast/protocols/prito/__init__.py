"""PriTO and PriO: total order broadcast by priority, in runs that end in bounded time."""
