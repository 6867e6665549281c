"""Being someone whom modes keep out."""

from __future__ import annotations

import os
from contextlib import contextmanager

import pytest


@pytest.fixture
def without_privileges():
    """As a user who owns nothing, where the tests run as root, whom no mode keeps from anything.

    Modules are found in folders that such a user may not see: import them before.
    """

    @contextmanager
    def drop():
        if os.geteuid() != 0:
            yield
            return
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    return drop
