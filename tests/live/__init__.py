"""Tests of live groups; those of sessions and of discovery run in virtual time."""
