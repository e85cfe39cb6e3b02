"""The papers' definitions as small pure functions over what a trace says was sent and delivered.

Nothing here has ever seen a protocol, so that no mistake can be shared with one.
"""

from ordercast.audit.judge import Finding, Verdict, Witness, audit
from ordercast.audit.violations import Violation

__all__ = ["Finding", "Verdict", "Violation", "Witness", "audit"]
