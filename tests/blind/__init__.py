"""Machines that break one promise each and keep all others, and who notices them."""
