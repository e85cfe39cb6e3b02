"""The durable log of a live member: what it writes, what is on how many disks, how it comes back with its log."""
