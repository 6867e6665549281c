"""Helpers that every package uses: caching, threads, compiled functions, files, limits, progress."""
