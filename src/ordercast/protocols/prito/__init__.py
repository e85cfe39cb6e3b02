"""PriTO and PriO: total order broadcast by priority, in runs that end in bounded time.

Loss detection, recovery and the rest of the machine are those of `to`; here is the delivery policy.
"""
