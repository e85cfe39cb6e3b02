"""The data pipeline on Spark: sweeps of simulations, audits of traces of any size.

Every function takes the session as an argument; only the command line opens one.
"""

from ordercast.pipeline.measuring import measure

__all__ = ["measure"]
