"""Logs of other systems as traces: what was sent, and what each receiver was handed in which order."""
