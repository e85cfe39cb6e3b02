"""Structures of more than one protocol: gaps in numbers, sending logs, pending acknowledgments, back-off, timers."""
