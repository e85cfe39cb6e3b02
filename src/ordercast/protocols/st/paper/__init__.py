"""ST as printed in the paper, with its errors."""
