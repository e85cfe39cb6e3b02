"""What protocols share about time, of which they know only durations."""


def spread(duration: int, me: int, stamp: int) -> int:
    """A duration between T and 2T, drawn from who and when we are so that it can be repeated.

    Nodes whose timers ran equally long would answer in step and overrun the same receivers for ever.
    """
    mix = (me * 0x9E3779B1 + stamp * 0x85EBCA77) & 0xFFFFFFFF
    mix = ((mix ^ mix >> 15) * 0x2C1B3C6D) & 0xFFFFFFFF
    return duration + (duration * (mix >> 16) >> 16)
