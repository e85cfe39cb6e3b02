"""Groups of processes on networks of their own: namespaces, and a switch that loses, delays and doubles."""
