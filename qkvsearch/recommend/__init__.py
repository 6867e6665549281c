"""Recommendations and similar items, and the recording of interactions."""
