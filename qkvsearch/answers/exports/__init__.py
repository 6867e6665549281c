"""What a build knows, written to files for other programs."""
