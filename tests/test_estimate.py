"""What a build will take is told before anything is read, from files or from numbers alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from qkvsearch.data.readers import read_dataset
from qkvsearch.engine import estimate as module
from qkvsearch.engine.estimate import Size, estimate, size_of_dataset, size_of_files

LONG = Size(60_000, 1_000_000, 100_000_000, text_bytes=600_000)


def test_more_of_anything_takes_more():
    for name in ("n_items", "n_users", "n_interactions", "n_columns", "text_bytes"):
        more = estimate(replace(LONG, **{name: 2 * getattr(LONG, name) + 1}), "corpus", 2)
        less = estimate(LONG, "corpus", 2)
        for figure in ("stored", "seconds", "scratch"):
            assert getattr(more, figure) >= getattr(less, figure)
        assert sum(more.steps.values()) > sum(less.steps.values())
    assert estimate(LONG, "corpus", 8).seconds < estimate(LONG, "corpus", 2).seconds


def test_memory_is_that_of_the_largest_step_and_no_more_of_it_is_mapped():
    for size in (LONG, Size(1_000_000, text_bytes=10**8), Size(10, 10, 10, 3, 100)):
        found = estimate(size, "static", 2)
        assert found.memory == max(found.steps.values())
        assert 0 <= found.mapped < found.memory


def test_advice_goes_by_the_memory_of_the_machine():
    found = estimate(LONG, "corpus", 2)
    assert found.advice(24e9) == found.advice(None) == "this machine"
    assert found.advice(found.memory).startswith("this machine, slower")
    assert found.advice(0.5e9).startswith("--engine spark")
    texts = estimate(Size(50_000_000, text_bytes=10**10), "static", 2)
    assert texts.advice(8e9).startswith("--keys milvus:URI")


def test_what_nobody_told_is_assumed_and_named():
    found = Size(n_interactions=200).told(n_items=5)
    assert (found.n_users, found.text_bytes) == (10, 500)
    assert str(found) == "5 items, 10 users, 200 interactions (users, texts assumed)"
    assert "assumed" not in str(found.told(n_users=7).told(text_bytes=1))


@pytest.fixture
def files(tmp_path):
    items, log = tmp_path / "items.csv", tmp_path / "log.csv"
    items.write_text("id,title\n" + "".join(f"{k},a tent\n" for k in range(50)))
    log.write_text("user,item,rating\n" + "".join(f"{k % 7},{k % 50},5\n" for k in range(400)))
    return str(items), str(log)


def test_text_is_counted_by_its_first_lines(files, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 1000)
    found = size_of_files(None, *files)
    assert found.n_items == 50
    assert found.n_interactions == pytest.approx(400, rel=0.1)
    assert found.n_columns == 1
    assert size_of_files(files[1], None, None).n_interactions == found.n_interactions
    assert size_of_files(files[0], None, None).n_items == 50


def test_parquet_is_counted_by_what_stands_at_its_end(files, tmp_path):
    pytest.importorskip("pyarrow")
    import pandas as pd

    pd.read_csv(files[1]).to_parquet(tmp_path / "log.parquet")
    found = size_of_files(None, None, str(tmp_path / "log.parquet"))
    assert (found.n_interactions, found.n_users, found.n_items) == (400, 7, 50)


@pytest.mark.parametrize("name", ["nowhere.csv", "-", "shop.db#orders"])
def test_what_tells_nothing_counts_nothing(name):
    assert size_of_files(None, name, name).n_interactions == 0


def test_what_was_read_is_counted(files):
    found = size_of_dataset(read_dataset(*files))
    assert (found.n_items, found.n_users, found.n_interactions) == (50, 7, 350)
    assert (found.n_columns, found.text_bytes) == (1, 50 * len("a tent"))
