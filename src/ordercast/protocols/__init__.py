"""The protocols: a package for each, machines without clock, socket or chance (see `ordercast.model.machine`)."""
