"""Shared by protocols: destinations, gaps in numbers, sending logs, pending acknowledgments, back-off, jitter."""
