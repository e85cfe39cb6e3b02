"""Live groups: the protocols in real time, over UDP. The public names are in `ordercast`."""
