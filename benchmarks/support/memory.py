"""The memory of a process (Linux)."""

from __future__ import annotations

from pathlib import Path


def peak() -> int:
    """The most that this process has had in memory, by Linux's count.

    `getrusage` would count the parent's too.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
    return int(kilobytes) * 1024


def own(pid: int) -> int:
    """The bytes that a process has for itself alone, without what it shares with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    kilobytes = [int(line.split()[1]) for line in lines if line.startswith("Private_")]
    return sum(kilobytes) * 1024
