"""The same work elsewhere: engines for what is too large for one machine."""
