"""PriTO as printed, with its mistakes."""
