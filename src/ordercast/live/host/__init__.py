"""A protocol machine in real time: batching, timers, congestion control, back-pressure, recording."""
