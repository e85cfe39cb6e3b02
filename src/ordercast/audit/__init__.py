"""The papers' definitions as small pure functions over what a trace says was sent and delivered.

Nothing here has ever seen a protocol, so that no mistake can be shared with one. Start at `judge.audit`.
"""
