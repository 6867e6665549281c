"""Alternating least squares on a cluster: blocks, how they are solved, and what travels."""
