"""Modules that no suite breaks systematically, with the reason: what notices their mistakes instead."""

_EVENT_LOOP = (
    "it works on an event loop, sockets or files, where each trial would take seconds: `tests.live_harness.broken` "
    "breaks such machines by hand, and says after how many groups that is noticed"
)
_SPARK = (
    "it runs on Spark or in processes, where each trial would take a minute: verdicts are compared with those of the "
    "reference audit"
)
_TEXT = "it says how a verdict is written, not what it is: tests compare the texts and pages"
_FORMS = "it has names and forms of units, and hardly a rule"

NOT_BROKEN = {
    "protocols.registry": _FORMS,
    "protocols.*.units": _FORMS,
    "protocols.prito.machine": "it joins the machine of `to` with its policy, both of which are broken",
    "protocols.prito.prio": "it joins the machine of `to` with its policy, both of which are broken",
    "audit.ci_results": _TEXT,
    "audit.explanation": _TEXT,
    "audit.names": _TEXT,
    "audit.page": _TEXT,
    "audit.numbering": "not tried: numbers of other systems' logs; `tests/audit/test_profiles.py`",
    "audit.profiles": "not tried: which properties are asked; `tests/audit/test_profiles.py`",
    "audit.linearizability": "not tried: compared with a search of all orders, `tests/audit/test_linearizability.py`",
    "pipeline.audit.kernel.profiles": "not tried: `tests/pipeline/test_profiles.py` compares with the reference audit",
    "pipeline.audit.stream.*": "not tried: `tests/pipeline/test_prefix.py` compares prefixes with the reference audit",
    "pipeline.audit.*": _SPARK,
    "live.session.events": "values of a session's inputs and outputs",
    "live.transport.addresses": "how addresses are written: `tests/live/test_addresses.py`",
    "live.*": _EVENT_LOOP,
    "wire.stream_seal": "how a connection for state is encrypted: `tests/live/state_transfer` and `tests/wire`",
}
"""By patterns of names below `ordercast`."""
