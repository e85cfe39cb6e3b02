"""A durable, ordered log."""
