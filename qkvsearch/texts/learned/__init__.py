"""Encoders learned from the catalogue's own texts."""
