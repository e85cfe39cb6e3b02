"""Structures that more than one protocol uses: gaps in numbers, sending logs, watched logs, timers."""
