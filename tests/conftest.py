"""What several rooms are tested on: both bundled samples, built once, and a shop of nine things."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import settings

import qkvsearch
from qkvsearch.data.samples import sample
from qkvsearch.engine import Engine

# A slow machine is no failure.
settings.register_profile("qkvsearch", deadline=None)
settings.load_profile("qkvsearch")

# Sums of parts may differ from a score by this much of what was added up.
TOLERANCE = 1e-4


@pytest.fixture(scope="session")
def assert_adds_up():
    """Checks parts against their score by the stated tolerance, 1e-4 · max(1, Σ|parts|)."""

    def check(values, score):
        values = list(values)
        tolerance = TOLERANCE * max(1.0, sum(abs(value) for value in values))
        assert sum(values) == pytest.approx(score, abs=tolerance)

    return check


@pytest.fixture(scope="session")
def videos_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("videos") / "ws"
    qkvsearch.build(path, "sample:videos")
    return path


@pytest.fixture(scope="session")
def movies_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("movies") / "ws"
    qkvsearch.build(path, "sample:movies")
    return path


@pytest.fixture(scope="session")
def things_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The videos alone, without who watched them."""
    path = tmp_path_factory.mktemp("things") / "ws"
    qkvsearch.build(path, items=sample("videos").path("videos.csv"))
    return path


@pytest.fixture(scope="session")
def things(things_path: Path) -> Engine:
    return Engine(things_path)


@pytest.fixture(scope="session")
def videos(videos_path: Path) -> Engine:
    return Engine(videos_path)


@pytest.fixture(scope="session")
def movies(movies_path: Path) -> Engine:
    return Engine(movies_path)


@pytest.fixture(scope="session")
def shop_items() -> pd.DataFrame:
    """Integer ids, two equal titles, one item without words, one that nobody met (9)."""
    rows = [
        (1, "red apple", 2001),
        (2, "green apple", 2002),
        (3, "apple pie", 2003),
        (4, "steel hammer", 2004),
        (5, "claw hammer", 2005),
        (6, "hammer handle", 2006),
        (7, "ladder", 2007),
        (8, "ladder", 2008),
        (9, "apple hammer", 2009),
        (30, "!!!", 2010),
    ]
    return pd.DataFrame(rows, columns=["id", "title", "made"])


@pytest.fixture(scope="session")
def shop_log() -> pd.DataFrame:
    """Cooks 101 to 103 and builders 201 to 203; 300 rated everything the lowest."""
    rows = [(user, item, 5) for user in (101, 102, 103) for item in (1, 2, 3)]
    rows += [(user, item, 5) for user in (201, 202, 203) for item in (4, 5, 6)]
    rows = [row for row in rows if row not in [(101, 3, 5), (201, 6, 5)]]
    rows += [(101, 4, 1), (201, 1, 1), (202, 7, 3), (203, 8, 3), (300, 1, 1), (300, 4, 1)]
    rows += [(103, 30, 4)]
    return pd.DataFrame(rows, columns=["user", "item", "rating"])


@pytest.fixture(scope="session")
def shop_path(tmp_path_factory, shop_items, shop_log) -> Path:
    path = tmp_path_factory.mktemp("shop") / "ws"
    qkvsearch.build(path, items=shop_items, interactions=shop_log)
    return path


@pytest.fixture(scope="session")
def shop(shop_path: Path) -> Engine:
    return Engine(shop_path)
