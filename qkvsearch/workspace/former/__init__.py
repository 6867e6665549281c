"""Workspaces of older formats: read as they are, and brought up to date by the first writer."""
