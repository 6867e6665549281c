"""Pytest collects test_faults.py alone: the rest is run by it, and by `make faults`."""

collect_ignore_glob = ["[!t]*.py", "fuzz/*"]
