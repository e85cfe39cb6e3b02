"""PO: partial order to everybody, with go-back-n: the baseline that the papers compare SPO with."""
