"""The protocols: a package for each, state machines without a clock, a socket or randomness.

Every package has `units` (what is sent), `machine` (the protocol at one node, see `ordercast.model.machine`; its
docstring lists the parts), and, where it loses anything, `loss_detection`; `recovery` or `retransmission` is what
follows a loss, `paper` the rules as printed. docs/protocols/overview.md leads from a question to the file.
"""
