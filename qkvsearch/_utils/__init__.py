"""Helpers of all packages: caching, threads, compiled functions, files, limits, progress."""
