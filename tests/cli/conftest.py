"""Every test of a door starts in an empty folder."""

import shutil
from pathlib import Path

import pytest

from qkvsearch.learn import merge as merging
from qkvsearch.tables.samples import SAMPLES, Sample


@pytest.fixture(autouse=True)
def in_an_empty_folder(surroundings):
    pass


@pytest.fixture
def shop_here(surroundings, shop_path, monkeypatch):
    """The shop as the workspace of this folder, whose few items no change is too many for."""
    monkeypatch.setattr(merging, "MAX_CHANGED_SHARE", 9)
    return Path(shutil.copytree(shop_path, ".qkvsearch"))


@pytest.fixture
def small_sample(shop_items, shop_log, monkeypatch, tmp_path_factory):
    """The shop in place of the bundled videos: what is asked is when a sample is built."""
    folder = tmp_path_factory.mktemp("datasets")
    shop_items.to_csv(folder / "items.csv", index=False)
    shop_log.to_csv(folder / "log.csv", index=False)
    monkeypatch.setattr(Sample, "path", lambda self, name: folder / name)
    monkeypatch.setitem(SAMPLES, "videos", Sample("a shop", "items.csv", "log.csv"))
