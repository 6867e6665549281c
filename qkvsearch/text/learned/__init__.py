"""Encoders learned from the catalog's own texts."""
