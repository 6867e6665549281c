"""Things and logs from files and frames: what is kept, what is skipped, and that it adds up."""

import gzip
import json

import pandas as pd
import pytest

from qkvsearch.errors import DataError
from qkvsearch.tables.columns import Columns
from qkvsearch.tables.dataset import read_dataset
from qkvsearch.tables.sources import read_source


@pytest.fixture
def write(tmp_path):
    def writer(name, text):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return writer


def pairs(log):
    """(user, item): rating, or the time, or True."""
    values = log.ratings if log.ratings is not None else log.times
    values = [True] * len(log) if values is None else values.tolist()
    met = zip(log.users, log.items, values, strict=True)
    return {(log.user_ids[user], log.item_ids[item]): value for user, item, value in met}


ITEMS = "id,title\n1,kettle\n2,anchor\n"


def test_a_log_alone_titles_items_by_id(write):
    dataset = read_dataset(None, write("log.csv", "user,item\nann,30\nbob,4\n"))
    assert dataset.catalog.frame["title"].tolist() == ["4", "30"]
    assert pairs(dataset.interactions) == {("ann", 30): True, ("bob", 4): True}
    assert (dataset.interactions.ratings, dataset.interactions.times) == (None, None)


def test_its_name_is_that_of_the_file_of_the_items(write):
    items, log = write("shop.csv", ITEMS), write("log.csv", "user,item\nann,1\n")
    assert read_dataset(items, log).name() == "shop"
    assert read_dataset(write("my.shop.csv", ITEMS), None).name() == "my.shop"
    packed = items.with_name("packed.csv.gz")
    packed.write_bytes(gzip.compress(ITEMS.encode()))
    assert read_dataset(packed, None).name() == "packed"
    assert read_dataset([items, write("more.csv", "id,title\n3,rope\n")], log).name() == ""
    assert read_dataset(pd.DataFrame({"id": [1], "title": ["kettle"]}), log).name() == ""
    assert read_dataset(None, log).name() == ""


def test_items_that_the_catalog_lacks_are_skipped_and_counted(write):
    log = write("log.csv", "user,item\nann,1\nann,9\nbob, 2 \nbob,8\n")
    dataset = read_dataset(write("items.csv", ITEMS), log)
    assert pairs(dataset.interactions) == {("ann", 1): True, ("bob", 2): True}
    report = dataset.reports[1]
    assert report.skipped == {"with an item that is not in the catalog": 2}
    assert (report.read, report.kept) == (4, 2)


MESSY_ITEMS = """id,title,tags
1,old kettle,
,nameless,
1,kettle,steel
2,anchor
3,rope,hemp,too,many
#NAME?,broken,
"""
MESSY_LOG = """user,item,rating,time
ann,1,4,100
ann,1,2,50
,1,3,1
"  ",1,3,1
bob,,3,1
bob,7,3,1
bob,2,nan,1
bob,2,inf,1
bob,2,good,1
bob,2,,1
bob,2,1e300,1
bob,2,5,1,extra
bob,2,3,
"""


def test_reports_of_messy_files_add_up_and_name_every_reason(write):
    files = write("items.csv", MESSY_ITEMS), write("log.csv", MESSY_LOG)
    dataset = read_dataset(*files)
    items, log = dataset.reports
    assert (items.read, items.kept, items.merged) == (6, len(dataset.catalog), 1)
    assert items.skipped == {
        "with too many columns": 1,
        "without an id": 1,
        "with a spreadsheet error for an id": 1,
    }
    assert (log.read, log.kept, log.merged) == (13, len(dataset.interactions), 3)
    assert log.skipped == {
        "with too many columns": 1,
        "without a user": 2,
        "without an item": 1,
        "with an item that is not in the catalog": 1,
        "with a rating that is not a number": 2,
        "with a rating beyond ±1e+12": 1,
    }
    for report in dataset.reports:
        assert report.read == report.kept + report.merged + report.skipped.total()
    assert pairs(dataset.interactions) == {("ann", 1): 4, ("bob", 2): 3}


def test_a_guessed_time_column_without_times_is_left_out_and_said(write):
    dataset = read_dataset(None, write("log.csv", "user,item,date\n1,1,5\n1,2,soon\n1,3,later\n"))
    assert dataset.interactions.times is None
    assert len(dataset.interactions) == 3
    assert "column date left out: it is named as the time, and row 3 does not fit" in str(
        dataset.reports[0]
    )


def test_who_met_an_item_without_rating_it_has_met_it(write):
    log = read_dataset(None, write("log.csv", "user,item,rating\n1,1,5\n1,2,\n")).interactions
    assert len(log) == 2
    assert len(log.rated()) == 1


def test_a_later_meeting_without_a_rating_does_not_take_one_back(write):
    log = "user,item,rating,time\n1,1,5,10\n1,1,,20\n1,1,4,5\n"
    assert pairs(read_dataset(None, write("log.csv", log)).interactions) == {(1, 1): 5}


def test_a_log_with_titles_names_its_items(write):
    log = "user,item,title,rating\na,1,Kettle,5\nb,1,Kettle,4\nb,2,Anchor,3\n"
    dataset = read_source(write("log.csv", log))
    assert dataset.catalog.frame["title"].tolist() == ["Kettle", "Anchor"]
    assert len(dataset.interactions) == 3
    (report,) = dataset.reports
    assert report.read == report.kept == 3


def test_the_named_item_column_may_be_called_title(write):
    path = write("log.csv", "user,title\nu1,Tent\nu1,Rope\nu2,Tent\n")
    dataset = read_dataset(None, path, columns=Columns(user="user", item="title"))
    assert dataset.catalog.frame["title"].tolist() == ["Rope", "Tent"]
    assert len(dataset.interactions) == 3


def test_an_orders_number_is_no_title_of_its_items(write):
    log = "Name,Email,Lineitem name,Lineitem sku\n#1,a@x.org,Tent,001\n#1,a@x.org,Rope,002\n"
    for more in ("", "#2,b@x.org,Tent,001\n#3,b@x.org,Rope,002\n"):
        dataset = read_source(write("orders.csv", log + more))
        assert dataset.catalog.frame["title"].tolist() == ["Tent", "Rope"]


def test_a_buyers_name_is_no_title_of_the_items(write):
    log = "user,item,name\na,1,Ann\nb,1,Bob\na,2,Ann\nb,2,Bob\n"
    dataset = read_source(write("log.csv", log))
    assert dataset.catalog.frame["title"].tolist() == ["1", "2"]


def test_told_columns_make_a_file_a_log(write):
    log = write("log.csv", "who,what\nann,1\nbob,2\n")
    assert len(read_source(log, columns=Columns(user="who", item="what")).interactions) == 2


@pytest.mark.parametrize("columns", [Columns(user="who"), Columns(rating="stars")])
def test_a_column_of_a_file_that_was_not_given_is_refused(write, columns):
    with pytest.raises(DataError, match="is a column of `interactions`, which were not given"):
        read_dataset(write("items.csv", ITEMS), None, columns)


def test_ranks_within_a_user_order_rows_but_are_not_comparable(write):
    log = "user,item,rating,time_rank_in_user\n1,1,5,2\n1,1,3,1\n"
    log = read_dataset(None, write("log.csv", log)).interactions
    assert not log.times_comparable
    assert pairs(log) == {(1, 1): 5}


def test_a_frame_with_whole_and_broken_numbers_reads_as_the_file_does(write):
    items = pd.DataFrame({"id": [2, 1], "title": ["anchor", "kettle"]})
    log = pd.DataFrame(
        {
            "user": [7.0, 8.0, None],
            "item": [1.0, 2.0, 1.0],
            "rating": [4, 3.5, 1],
            "time": [3, 2, 1],
        }
    )
    text = "user,item,rating,time\n7,1,4,3\n8,2,3.5,2\n,1,1,1\n"
    from_frames = read_dataset(items, log)
    from_files = read_dataset(write("items.csv", ITEMS), write("log.csv", text))
    assert pairs(from_frames.interactions) == pairs(from_files.interactions)
    assert pairs(from_frames.interactions) == {(7, 1): 4, (8, 2): 3.5}
    pd.testing.assert_frame_equal(from_frames.catalog.frame, from_files.catalog.frame)
    assert from_frames.reports[1].skipped == from_files.reports[1].skipped == {"without a user": 1}
    assert "title" in items  # the caller's frame is as it was


def test_a_log_of_which_nothing_can_be_used_says_why(write):
    log = write("log.csv", "user,item\n1,8\n1,9\n")
    with pytest.raises(DataError, match=r"no usable rows; .*2 with an item that is not in the cat"):
        read_dataset(write("items.csv", ITEMS), log)


def test_nothing_given_is_an_error():
    with pytest.raises(DataError, match="nothing to build from"):
        read_dataset(None, None)


@pytest.mark.parametrize(
    ("columns", "role"),
    [({"item": "score"}, "rating"), ({"item": "date"}, "time"), ({"user": "score"}, "rating")],
)
def test_a_column_plays_one_role_only(write, columns, role):
    """The ids of items or users are neither their ratings nor their times."""
    log = write("log.csv", "user,item,score,date\n1,2,3,4\n5,6,7,8\n")
    dataset = read_dataset(None, log, Columns(**columns))
    found = dataset.interactions
    values = {"rating": found.ratings, "time": found.times}
    assert values.pop(role) is None
    assert next(iter(values.values())) is not None


@pytest.mark.parametrize("nested", ["[1]", "[1, 2]", '{"a": 1}', "[]"])
@pytest.mark.parametrize("role", ["id", "user", "item"])
def test_an_id_that_is_a_list_or_an_object_is_no_other_id(write, role, nested):
    """As text, [1] would be the item 1, and [1, 2] the item "1|2"."""
    rows = [{"user": "u", "item": 1, "title": "a"}, {"user": "v", "item": 1, "title": "b"}]
    name = "item" if role == "id" else role
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    text += json.dumps(rows[0] | {name: "X"}).replace('"X"', nested)
    path = write("t.jsonl", text)
    given = (path, None) if role == "id" else (None, path)
    columns = Columns(id="item") if role == "id" else None
    message = rf"t\.jsonl, row 3: column '{name}' is the {role}, and a list or an object is in it"
    with pytest.raises(DataError, match=message):
        read_dataset(*given, columns)
    frame = pd.DataFrame([*rows, rows[0] | {name: json.loads(nested)}])
    with pytest.raises(DataError, match=rf"column '{name}' is the {role}, and a list"):
        read_dataset(*((frame, None) if role == "id" else (None, frame)), columns)
