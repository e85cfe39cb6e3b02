"""PO: FIFO order broadcast to all nodes, with go-back-n: the baseline that the papers compare SPO with.

Its units, its loss detection and the rest of its machine are those of `spo`.
"""
