"""Give back to the system what libraries keep of freed memory, for what they may read next."""

from __future__ import annotations

import ctypes
import sys


def release_freed_memory() -> None:
    """Release what Arrow and C's library keep: after large files, as much as all their texts."""
    arrow = sys.modules.get("pyarrow")  # pandas imports it where it is installed
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        # Other libraries than glibc have no such function.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
