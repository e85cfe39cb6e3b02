"""Structures of more than one protocol: gaps in sequence numbers, sending logs, pending acknowledgments, timers."""
