"""SPO: selective partial order. Each message to any subset of the group, each sender's order kept (FIFO)."""
