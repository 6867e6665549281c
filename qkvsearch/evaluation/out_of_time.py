"""The error by which a tuning with a deadline stops trying."""


class OutOfTimeError(Exception):
    """One more trial would leave too little time for what a tuning ends with."""
