"""The reference audit: the papers' definitions as small pure functions over what a trace says was sent and delivered.

Nothing here imports a protocol, so that the audit cannot share a mistake with one.
"""

from ordercast.audit.names import Names
from ordercast.audit.reference import audit
from ordercast.audit.verdict import ByProtocol, Finding, Verdict, Witness
from ordercast.audit.violations import Violation

__all__ = ["ByProtocol", "Finding", "Names", "Verdict", "Violation", "Witness", "audit"]
