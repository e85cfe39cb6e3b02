"""The papers' definitions as small pure functions over what a trace says was sent and delivered.

Nothing here has ever seen a protocol, so that no mistake can be shared with one.
"""

from ordercast.audit.judge import Verdict, audit

__all__ = ["Verdict", "audit"]
