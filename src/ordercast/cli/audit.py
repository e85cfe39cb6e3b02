"""`ordercast audit`."""


def audit_command() -> None:
    """Judges a trace."""
