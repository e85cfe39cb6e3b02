"""PO: FIFO order broadcast to all nodes, with go-back-n: the baseline that the papers compare SPO with."""
