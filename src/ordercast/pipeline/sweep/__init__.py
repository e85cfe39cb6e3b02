"""Parameter sweeps: many simulations on Spark, written into one trace, or measured for their counters alone."""
