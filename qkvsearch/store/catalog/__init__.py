"""The catalog on disk: one file for each segment, read as one catalog."""
