"""The vectorised audit: array operations that find that a run passes, or leave it to the reference audit."""
