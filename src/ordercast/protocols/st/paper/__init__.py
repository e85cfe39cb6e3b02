"""ST as printed, with its mistakes."""
