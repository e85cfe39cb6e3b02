"""One property-based harness for all machines: what may happen to a group is drawn, what breaks a promise is shrunk."""
