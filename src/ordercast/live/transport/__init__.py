"""Datagrams in and out: sockets, fragmentation, packing, the reorder buffer, the relay."""
