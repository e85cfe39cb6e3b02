"""Deliberate breakages of our own code, and the tests that must notice them: `python -m tests.mutations`."""
