"""The lessons, a folder each."""
