"""ST: selective total order. Each message to any subset of the group, in one order for all common destinations."""
