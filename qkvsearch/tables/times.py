"""The time of an interaction that has none."""

# The lowest int64: before all other times. As a date of NumPy, it is NaT.
UNKNOWN_TIME = -(2**63)
