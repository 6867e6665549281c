"""Several files of one option are one table, and each has its own report."""

import re

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import load, read_dataset
from qkvsearch.tables.sources import read_source

ITEMS = pd.DataFrame({"id": [1, 2, 3], "title": ["kettle", "anchor", "old lamp"]})


@pytest.fixture
def write(tmp_path):
    def writer(name, text):
        path = tmp_path / name
        path.write_text(text)
        return path

    return writer


@pytest.fixture
def logs(write):
    return [
        write("a.csv", "user,item,rating\nann,1,5\nbob,2,4\n"),
        write("b.csv", "item;rating;user\n2;3;ann\n;3;bob\n9;1;cid\n"),
        write("c.jsonl", '{"user": "cid", "item": 3, "rating": 4.5}\n'),
    ]


def test_columns_are_joined_by_name_and_each_file_has_its_report(logs):
    dataset = read_dataset(ITEMS, logs)
    assert list(dataset.interactions.user_ids) == ["ann", "bob", "cid"]
    total, *files = dataset.reports[1].lines()[:4]
    assert total.startswith(
        "a.csv and 2 more: 6 rows read: 4 kept, 0 duplicates combined, 2 skipped"
    )
    assert "1 without an item, first row 3 of b.csv" in total
    used = [f"{n} used, {s} skipped" for n, s in ((2, 0), (1, 2), (1, 0))]
    assert all(u in file for u, file in zip(used, files, strict=True))


def test_a_pattern_is_its_files_by_name_and_frames_may_stand_beside_files(logs, tmp_path):
    frame = pd.DataFrame({"user": ["dora"], "item": [1], "rating": [2]})
    rows = load([str(tmp_path / "*.csv"), frame], "interactions")[0].frame()
    assert list(rows["user"]) == ["ann", "bob", "ann", "bob", "cid", "dora"]


def test_a_column_that_a_file_lacks_is_empty_there_unless_it_has_a_role(logs, write):
    more = write("d.csv", "user,item,rating,shop\nann,3,2,north\n")
    report = read_dataset(ITEMS, [*logs, more]).reports[1]
    assert report.files[0].notes == ["no column shop, which is empty there"]
    other = write("e.csv", "user,item\nann,3\n")
    with pytest.raises(DataError, match=r"^e.csv: no column 'rating', which is the rating of the"):
        read_dataset(ITEMS, [*logs, other])
    assert len(read_dataset(ITEMS, [*logs, other], Columns(ignore=["rating"])).interactions)
    orders = write("h.csv", "user,item,quantity\nann,3,2\n")
    said = "h.csv: no column 'rating'.*; e.csv: no column 'quantity'.*"
    with pytest.raises(DataError, match=said) as refused:
        read_dataset(ITEMS, [*logs, other, orders])
    assert "join" not in str(refused.value)
    # What it says works.
    ignored = re.findall("`ignore` ([a-z]+)", str(refused.value))
    assert len(read_dataset(ITEMS, [*logs, other, orders], Columns(ignore=ignored)).interactions)
    items = [write("f.csv", "id,title\n1,kettle\n"), write("g.csv", "id,name\n2,anchor\n")]
    with pytest.raises(DataError, match=r"^g.csv: no column .title., which is the title of the"):
        read_dataset(items, None)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["a.csv", "./a.csv"], r"a.csv is named twice in `interactions`"),
        (["*.csv", "a.csv"], r"a.csv is named twice in `interactions`"),
        (["logs-*.csv"], r"logs-\*.csv: no file matches this pattern"),
    ],
)
def test_a_file_named_twice_and_an_empty_pattern_are_refused(
    logs, tmp_path, names, reason, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=reason):
        read_dataset(ITEMS, names)


def test_a_second_log_is_never_taken_for_the_items(logs):
    with pytest.raises(DataError, match=r"^b.csv: give a SOURCE, or .* in quotes"):
        read_source(logs[1], interactions=logs[0])


@pytest.mark.parametrize(
    ("text", "ids", "skipped"),
    [
        ("id,title\n1,a\nid,title\n2,b\n", ["1", "2"], {"that repeats the header": 1}),
        ("May\nid,title\n1,a\n\nJune\nid,title\n2,b\n", ["1", "2"], {"that repeats the header": 2}),
        ("id,tag,tag\n1,a,b\nid,tag,tag\n", ["1"], {"that repeats the header": 1}),
        ("title\ntitle\na\n", None, {}),
    ],
)
def test_a_repeated_header_is_skipped_and_counted(write, text, ids, skipped):
    table, report = load(write("t.csv", text), "items")
    frame = table.frame()
    assert report.skipped == skipped
    assert len(frame) == 2 if ids is None else list(frame["id"]) == ids


def test_a_header_with_the_columns_in_another_order_is_refused(write):
    with pytest.raises(DataError, match="row 3: a second header has the columns in another order"):
        load(write("t.csv", "id,title\n1,a\ntitle,id\nb,2\n"), "items")


def test_a_torn_last_line_of_json_is_skipped_and_one_before_it_is_an_error(write):
    table, report = load(write("t.jsonl", '{"id": 1}\n{"id": 2}\n{"id": 3, "ti'), "items")
    frame = table.frame()
    assert (list(frame["id"]), report.skipped) == (["1", "2"], {"that is cut off": 1})
    with pytest.raises(DataError, match=r"t.jsonl, line 2: not JSON"):
        load(write("t.jsonl", '{"id": 1}\n{"id": 2, "ti\n{"id": 3}\n'), "items")
    with pytest.raises(DataError, match=r"t.jsonl, line 1: not JSON"):
        load(write("t.jsonl", '{"id": 1, "ti'), "items")


def test_a_file_of_which_most_rows_are_skipped_is_warned_of(write):
    good = write("a.csv", "user,item\n" + "ann,1\nbob,2\n" * 50)
    bad = write("b.csv", "user,item\nann,x1\nbob,x2\n")
    warnings = read_dataset(ITEMS, [good, bad]).reports[1].warnings
    assert [w.partition(" rows")[0] for w in warnings] == ["b.csv: 2 of 2"]
    many = [write(f"{n}.csv", "user,item\nann,1\n") for n in range(20)]
    lines = read_dataset(ITEMS, [bad, *many]).reports[1].lines()
    assert lines[2] == "20 other files: 20 rows read, all used"


def test_the_last_row_of_each_file_may_be_a_total(write):
    files = [write(f"{n}.csv", f"id,title,price\n{n},Lamp {n},3\nTotal,,3\n") for n in (1, 2)]
    dataset = read_dataset(files, None)
    assert dataset.reports[0].skipped == {"that is a total": 2}
    assert list(dataset.catalog.ids) == [1, 2]


def test_numbers_of_other_kinds_in_another_file_stay_what_they_are(tmp_path, write):
    cells = [[4], [4.5], pd.to_datetime(["2024-01-01"]), pd.to_datetime(["2024-01-01"], utc=True)]
    for n, value in enumerate(cells):
        pd.DataFrame({"id": [n], "x": value}).to_parquet(tmp_path / f"{n}.parquet")
    rows = load(str(tmp_path / "*.parquet"), "items")[0].frame()
    assert [cell[:4] for cell in rows["x"]] == ["4", "4.5", "2024", "2024"]


def test_a_row_skipped_while_reading_names_its_file(write):
    files = [write("a.csv", "id,title\n1,a\n"), write("b.csv", "id,title\n2,b\n3,c,d,e,f\n")]
    assert "1 with too many columns, first row 3 of b.csv" in str(load(files, "items")[1])
