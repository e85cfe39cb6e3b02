"""Durations of timers. Protocols have no clock: they only name durations."""


def spread(duration: int, me: int, stamp: int) -> int:
    """A pseudo-random duration in [T, 2T), determined by the node and the number of its transmissions.

    Equal timers would make nodes answer in step and overrun the same receivers again and again.
    """
    mix = (me * 0x9E3779B1 + stamp * 0x85EBCA77) & 0xFFFFFFFF
    mix = ((mix ^ mix >> 15) * 0x2C1B3C6D) & 0xFFFFFFFF
    return duration + (duration * (mix >> 16) >> 16)
