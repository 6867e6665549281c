"""Imports of libraries that change the process, which is left as it was."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

# threadpoolctl and scikit-learn set these. Elsewhere than on Linux they stay, since two copies of
# OpenMP in one process end it without them.
OPENMP = ("KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK") if sys.platform == "linux" else ()


@contextmanager
def leaving_no_trace(variables: Mapping[str, str] | None = None) -> Iterator[None]:
    """Import libraries in this block; then restore the environment and the warning filters.

    variables: what the libraries are to find in the environment meanwhile.

    >>> with leaving_no_trace({"QKVSEARCH_EXAMPLE": "1"}):
    ...     os.environ["QKVSEARCH_EXAMPLE"]
    '1'
    >>> "QKVSEARCH_EXAMPLE" in os.environ
    False
    """
    variables = variables or {}
    before = {name: os.environ.get(name) for name in (*OPENMP, *variables)}
    os.environ.update(variables)
    try:
        with warnings.catch_warnings():
            yield
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value
            else:
                os.environ.pop(name, None)
