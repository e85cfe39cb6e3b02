"""The explorer: every schedule of a small group, on the machines themselves."""
