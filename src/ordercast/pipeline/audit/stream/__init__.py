"""The streaming audit: follows a trace while it grows."""
