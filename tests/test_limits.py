"""Every limit stands in the documentation, holds, and is raised as it says."""

import json
import sqlite3
from contextlib import closing

import pytest

from qkvsearch._utils import limits
from qkvsearch.errors import DataError, QkvError
from qkvsearch.tables.files.tables import read_table


def rows_of(tmp_path, kind):
    """Tables of three rows."""
    path = tmp_path / f"items.{kind}"
    if kind == "csv":
        path.write_text("id,title\n1,a\n2,b\n3,c\n")
    elif kind == "jsonl":
        path.write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    elif kind == "parquet":
        pandas = pytest.importorskip("pandas")
        pandas.DataFrame({"id": [1, 2, 3]}).to_parquet(path)
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE items AS SELECT 1 AS id UNION SELECT 2 UNION SELECT 3")
    return path


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "sqlite"])
def test_a_table_of_too_many_rows_is_refused_and_the_limit_can_be_raised(
    tmp_path, monkeypatch, kind
):
    path = rows_of(tmp_path, kind)
    monkeypatch.setenv("QKVSEARCH_MAX_ROWS", "2")
    with pytest.raises(DataError, match=r"more than 2 rows.*QKVSEARCH_MAX_ROWS=N"):
        read_table(path)
    monkeypatch.setenv("QKVSEARCH_MAX_ROWS", "3")
    assert len(read_table(path)[0]) == 3


def test_a_limit_that_is_no_number_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("QKVSEARCH_MAX_ROWS", "many")
    with pytest.raises(DataError, match="QKVSEARCH_MAX_ROWS='many': write a whole number"):
        read_table(rows_of(tmp_path, "csv"))


@pytest.mark.parametrize("depth", [98, 99, 150, 2000, 200_000])
def test_json_may_be_nested_a_hundred_deep(tmp_path, depth):
    path = tmp_path / "items.jsonl"
    path.write_text(f'{{"id": 1, "tags": {"[" * depth}{"]" * depth}}}\n')
    if depth < 100:
        assert len(read_table(path)[0]) == 1
        return
    with pytest.raises(DataError, match="line 1: more than 100 levels of JSON"):
        read_table(path)


def test_an_archive_of_too_many_files_is_refused(tmp_path, monkeypatch):
    import zipfile

    monkeypatch.setenv("QKVSEARCH_MAX_FILES", "3")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for i in range(4):
            archive.writestr(f"{i}.csv", "id\n1\n")
    with pytest.raises(DataError, match="more than 3 files in an archive"):
        read_table(f"{tmp_path / 'a.zip'}#1.csv")


def test_a_settings_file_of_a_model_has_a_limit(tmp_path, monkeypatch):
    from qkvsearch.text.pretrained.bert import Config

    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 4}))
    assert Config(tmp_path, "config.json").number("hidden_size") == 4
    monkeypatch.setattr(limits.Limit, "value", 3)
    with pytest.raises(QkvError, match="more than 3 bytes of a JSON file of a model"):
        Config(tmp_path, "config.json")


def test_a_question_that_is_too_long_is_refused(shop):
    assert shop.search("apple " * 20_000)
    for ask in (shop.search, shop.attend, shop.show, shop.similar, shop.history):
        with pytest.raises(QkvError, match=r"more than 200,000 characters of a query or a name"):
            ask("a" * 200_001)
