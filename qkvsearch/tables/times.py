"""Times of interactions: the one of those that have none, and those that cannot be."""

from time import time

# The lowest int64: before all other times. As a date of NumPy, it is NaT.
UNKNOWN_TIME = -(2**63)
# Seconds since 1970 up to here are times; larger numbers only order interactions.
END_OF_TIMES = 10**10
# Time zones and clocks differ by less.
TOLERANCE = 86_400


def first_future_time() -> int:
    """Return the number of seconds since 1970 from which on a time is in the future."""
    return int(time()) + TOLERANCE


def is_future(seconds: int | None) -> bool:
    """Return whether a number of seconds since 1970 is in the future.

    >>> is_future(4_102_444_800), is_future(1_700_000_000), is_future(None)
    (True, False, False)
    """
    return seconds is not None and first_future_time() <= seconds < END_OF_TIMES
