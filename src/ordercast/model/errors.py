"""The errors that ordercast raises, and whose fault each is.

OrdercastError
├── ConfigError          a value in a configuration is wrong: the sentence says which and what would be right
├── LocalProtocolError   the application asked a protocol for the impossible (a message to nobody)
├── PipelineError        Spark failed in the middle of its work, through no fault of a run
└── TraceError           a trace cannot be written or read: the sentence names the file

A peer's bad message is none of these: it is counted and dropped (see `Discard`), since whoever sends on a
network must not be able to raise anything here.
"""


class OrdercastError(Exception):
    """The root of all errors that ordercast raises on purpose."""


class ConfigError(OrdercastError, ValueError):
    """A configuration value is wrong."""


class LocalProtocolError(OrdercastError):
    """The application asked for what the protocol cannot do."""


class PipelineError(OrdercastError):
    """Spark failed in the middle of its work."""


class TraceError(OrdercastError):
    """A trace cannot be written or read."""
