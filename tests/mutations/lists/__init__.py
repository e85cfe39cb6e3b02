"""Which breakages there are: one module for each part, its `MUTATIONS`."""
