"""Every test of a door starts in an empty folder."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def in_an_empty_folder(surroundings) -> None:
    pass
