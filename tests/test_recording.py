"""Recorded by the file, taken back, listed in a history, and begun where there was no log."""

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import DataError, QkvError, UnknownIdError
from qkvsearch.rank.candidates import listed_positions

THINGS = pd.DataFrame(
    {
        "id": ["x", "y", "z", "w"],
        "title": ["rain jacket", "rain trousers", "camping stove", "gas stove"],
    }
)
RATED = pd.DataFrame(
    {
        "user": ["a", "a", "b", "b", "c"],
        "item": ["x", "y", "x", "z", "w"],
        "rating": [5, 1, 4, 2, 3],
        "time": [1_600_000_000 + k for k in range(5)],
    }
)


def shop(path, log=RATED, items=THINGS, **columns):
    columns = qkv.Columns(**columns) if columns else None
    return qkv.build(path, items=items, interactions=log, columns=columns, encoder="corpus")


@pytest.fixture
def rated(tmp_path):
    return shop(tmp_path / "rated")


@pytest.fixture
def bare(tmp_path):
    """A catalog without a log."""
    return qkv.build(tmp_path / "bare", items=THINGS, encoder="corpus")


@pytest.fixture
def weighed(tmp_path):
    log = RATED.rename(columns={"rating": "quantity"})
    return shop(tmp_path / "weighed", log, weight="quantity")


def of(engine, user):
    return {row["id"]: row for row in engine.history(user)}


def test_a_time_in_the_future_is_a_warning_and_what_is_dated_after_it_says_so(tmp_path, rated):
    assert not rated.record("a", "gas stove", 4).notes
    later = [*RATED["time"][:-1], 4_102_444_800]
    with shop(tmp_path / "late", RATED.assign(time=later)) as late:
        (warning,) = [line for line in late.info()["rows"] if "future" in line]
        assert "row 4" in warning
        assert "2100-01-01" in warning
        assert "2100-01-01" in late.record("a", "gas stove", 4).notes[-1]


# --- history ---


def test_a_history_is_the_log_and_what_was_recorded_the_latest_first(rated):
    rated.record("a", "gas stove", 4)
    history = rated.history("a")
    assert [(row["id"], row["rating"], row["recorded"]) for row in history] == [
        ("w", 4, True), ("y", 1, False), ("x", 5, False)
    ]  # fmt: skip
    assert history[1]["time"] == "2020-09-13 12:26:41"
    assert history[1]["title"] == "rain trousers"
    assert history[2]["confidence"] > history[1]["confidence"]
    assert [row["id"] for row in rated.history("a", k=1, offset=1)] == ["y"]


def test_an_item_that_left_the_catalog_is_said_in_the_history(rated):
    rated.record("a", "z", 3)
    rated.remove("z")
    history = rated.history("a")
    assert "z" not in [row["id"] for row in history]
    assert history.notes == ["Recorded as well, of items that are not in the catalog: 'z'."]
    rated.record("a", "w", 3)
    assert "1 recorded interaction is of items that are not" in rated.learn().notes[0]


def test_ranks_in_a_log_are_no_dates(tmp_path):
    engine = shop(tmp_path / "ranks", RATED.assign(time=range(5)))
    assert [row["time"] for row in engine.history("a")] == [1, 0]


# --- undo ---


def test_undo_takes_back_the_last_and_then_what_was_before(rated):
    before = rated.history("a").to_records()
    rated.record("a", "z", 3)
    rated.record("b", "w", 4)
    assert [(row["user"], row["id"]) for row in rated.undo_record()] == [("b", "w")]
    assert set(of(rated, "a")) == {"x", "y", "z"}
    assert [(row["user"], row["id"]) for row in rated.undo_record()] == [("a", "z")]
    assert rated.history("a").to_records() == before
    with pytest.raises(QkvError, match="nothing is recorded here that could be undone"):
        rated.undo_record()


# --- a file ---


def test_every_row_of_a_file_is_recorded_or_counted(rated, tmp_path):
    file = tmp_path / "today.csv"
    file.write_text(
        "user,item,rating,time\n"
        "a,z,4,2024-05-01\n"
        "new,x,5,2024-05-02\n"
        ",x,5,2024-05-02\n"
        "a,nowhere,5,2024-05-02\n"
        "b,w,9,2024-05-02\n"
    )
    done = rated.record_many(file)
    assert [(row["user"], row["id"], row["rating"]) for row in done] == [
        ("a", "z", 4), ("new", "x", 5)
    ]  # fmt: skip
    note, warning = done.notes
    assert "5 rows read: 2 kept" in note
    assert warning.startswith("Warning: today.csv: 3 of 5 rows were skipped: 1 without a user")
    for reason in ("without a user", "with an item that is not in the catalog",
                   "with a rating outside 1 to 5"):  # fmt: skip
        assert f"1 {reason}" in note
    assert of(rated, "a")["z"]["time"] == "2024-05-01 00:00:00"
    assert rated.info()["recorded"] == 2


def test_a_file_is_read_with_the_options_of_the_build(tmp_path):
    marked = RATED.assign(liked=["yes", "no", "no", "yes", "yes"])
    del marked["rating"]
    engine = shop(tmp_path / "shop", marked, ignore=["LIKED", "time"])
    (tmp_path / "may.csv").write_text("user,item,liked\nd,x,yes\nd,y,no\nc,z,yes\n")
    assert len(engine.record_many(tmp_path / "may.csv")) == 3
    with pytest.raises(DataError, match="no column 'lked'"):
        engine.record_many(marked, qkv.Columns(ignore=["lked"]))
    done = engine.record_many(tmp_path / "may.csv", qkv.Columns(rating="liked"), again=True)
    assert "ratings left out, because the interactions here have none" in done.notes[0]
    (tmp_path / "lists.txt").write_text("a;x;y\nb;x;z\nc;w\n")
    engine = shop(tmp_path / "lists", tmp_path / "lists.txt", layout="lists", delimiter=";")
    (tmp_path / "june.txt").write_text("d;y;z\n")
    assert [row["id"] for row in engine.record_many(tmp_path / "june.txt")] == ["y", "z"]
    assert len(engine.record_many(pd.DataFrame({"user": ["e"], "item": ["w"]}))) == 1
    matrix = tmp_path / "matrix.csv"
    matrix.write_text("age,who,x,y\n31,a,5,\n27,b,4,1\n44,c,2,3\n")
    options = {"layout": "matrix", "user": "who", "ignore": ["age"]}
    engine = shop(tmp_path / "matrix", matrix, **options)
    matrix.write_text("age,who,y,z\n31,d,5,1\n")
    assert [row["rating"] for row in engine.record_many(matrix)] == [5, 1]


def test_a_file_of_which_no_row_can_be_used_records_nothing(rated):
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "rating": [9, 7]})
    with pytest.raises(DataError, match="outside 1 to 5"):
        rated.record_many(frame)
    assert rated.info()["recorded"] == 0


def test_older_rows_of_a_file_stand_in_the_order_of_their_times(rated):
    frame = pd.DataFrame(
        {"user": "new", "item": ["x", "y", "z"], "time": ["2024-03-01", "2024-01-01", "2024-02-01"]}
    )
    rated.record_many(frame)
    assert [row["id"] for row in rated.history("new")] == ["x", "z", "y"]


def test_a_row_without_a_time_has_none_and_counts_when_it_is_recorded(rated):
    """Before and after `learn`; the latest record counts, be it without a time."""
    cells = {"user": "a", "item": ["z", "w", "y", "x"], "rating": [2, 3, 4, 5]}
    times = ["soon", "2024-05-01", None, "2030-01-01"]
    assert (
        "2 rows without a time"
        in rated.record_many(pd.DataFrame({**cells, "time": times})).notes[0]
    )
    expected = {"z": None, "w": "2024-05-01 00:00:00", "y": "2020-09-13 12:26:41",
                "x": "2030-01-01 00:00:00"}  # fmt: skip
    assert [row["time"] for row in rated.records("a")] == [
        "2030-01-01 00:00:00", None, "2024-05-01 00:00:00", None
    ]  # fmt: skip
    ranking = [hit.id for hit in rated.recommend(user="a", recent=1, seen=True)]
    for _ in range(2):
        history = of(rated, "a")
        assert {item: row["time"] for item, row in history.items()} == expected
        assert {item: row["rating"] for item, row in history.items()} == dict(
            zip(cells["item"], cells["rating"], strict=True)
        )
        rated.learn()
    assert len(ranking) == 4
    rated.record("c", "z", 1)
    rated.record_many(pd.DataFrame({"user": ["c"], "item": ["z"], "rating": [4]}))
    assert of(rated, "c")["z"]["rating"] == 4


def test_columns_that_the_log_had_are_known_again(tmp_path):
    log = RATED.rename(columns={"user": "wer", "item": "was", "rating": "wie"})
    engine = shop(tmp_path / "ws", log, user="wer", item="was", rating="wie")
    done = engine.record_many(pd.DataFrame({"wer": "a", "was": ["z", "w"], "wie": [2, None]}))
    expected = [("a", "z", 2), ("a", "w", None)]
    assert [(row["user"], row["id"], row["rating"]) for row in done] == expected
    assert engine.info(verify=True)


# --- weights ---


def test_in_a_log_of_weights_the_third_word_is_a_weight_and_a_negative_one_takes_back(weighed):
    weighed.record("a", "z", weight=2)
    assert of(weighed, "a")["z"]["confidence"] > 0
    weighed.record("a", "z", weight=-2)
    assert of(weighed, "a")["z"]["confidence"] == 0
    ranking = weighed.recommend(user="a", seen=True, explain=True)
    assert "z" not in {reason["id"] for hit in ranking for reason in hit.because}
    with pytest.raises(QkvError, match="a weight is a number other than 0"):
        weighed.record("a", "z", weight=0)
    for weight in (float("nan"), 1e308, -1e13):
        with pytest.raises(QkvError, match=r"`weight` must be a number between ±1e\+12, not"):
            weighed.record("a", "z", weight=weight)


def test_a_file_with_a_refund_takes_back_what_the_log_has(weighed):
    """Within the file alone there is nothing that it could take back."""
    assert of(weighed, "a")["x"]["weight"] == 5
    frame = pd.DataFrame({"user": "a", "item": ["x", "x", "z"], "quantity": [1, -6, 2]})
    done = weighed.record_many(frame)
    assert [row["weight"] for row in done] == [1, -6, 2]
    assert "3 kept" in done.notes[0]
    assert of(weighed, "a")["x"]["confidence"] == 0
    ranking = weighed.recommend(user="a", seen=True, explain=True)
    assert {reason["id"] for hit in ranking for reason in hit.because} == {"y", "z"}
    weighed.undo_record()
    assert of(weighed, "a")["x"]["weight"] == 5


def test_a_file_keeps_ratings_and_weights_where_the_log_has_both(tmp_path):
    engine = shop(tmp_path / "both", RATED.assign(quantity=1), weight="quantity")
    frame = pd.DataFrame({"user": "a", "item": ["z", "x"], "rating": 5, "quantity": [3, -1]})
    assert [(row["rating"], row["weight"]) for row in engine.record_many(frame)] == [
        (5, 3),
        (5, -1),
    ]
    assert of(engine, "a")["z"]["weight"] == 3
    assert of(engine, "a")["x"]["confidence"] == 0


def test_a_recorded_file_that_the_next_log_has_as_well_counts_once(weighed):
    """The orders of a day, and later the export of the whole year."""
    day = pd.DataFrame({"user": "a", "item": ["x", "z"], "quantity": [2, 3], "time": "2024-05-01"})
    assert "have no effect" not in weighed.record_many(day).notes[0]
    assert [of(weighed, "a")[item]["weight"] for item in "xz"] == [7, 3]
    log = RATED.rename(columns={"rating": "quantity"}).astype({"time": object})
    engine = shop(weighed.workspace.path, pd.concat([log, day]), weight="quantity")
    assert [of(engine, "a")[item]["weight"] for item in "xz"] == [7, 3]
    assert (
        "2 have no effect, because the log has the same"
        in engine.record_many(day, again=True).notes[0]
    )
    engine.record("a", "x", weight=1)
    assert of(engine, "a")["x"]["weight"] == 8


def test_refunds_in_a_file_are_no_likes_where_the_log_has_no_weights(rated):
    frame = pd.DataFrame({"user": "a", "item": ["z", "w"], "quantity": [-1, 2]})
    done = rated.record_many(frame)
    assert [row["id"] for row in done] == ["w"]
    assert "1 skipped (1 with a weight of 0 or less)" in done.notes[0]
    assert "weights left out" in done.notes[0]


# --- where there is no log ---


def test_into_a_catalog_without_a_log_one_can_record_and_be_recommended_to(bare, assert_adds_up):
    bare.record("ann", "rain jacket")
    assert [row["id"] for row in bare.history("ann")] == ["x"]
    ranking = bare.recommend(user="ann", explain=True)
    assert ranking[0].id == "y", "the other thing for rain"
    assert "x" not in [hit.id for hit in ranking]
    assert any("By text alone" in note for note in ranking.notes)
    bare.record("ann", "camping stove")
    for hit in bare.recommend(user="ann", explain=True):
        assert {reason["id"] for reason in hit.because} == {"x", "z"}
        assert_adds_up([reason["contribution"] for reason in hit.because], hit.score)
        assert hit.cold is None


def test_diverse_recommendations_by_text_are_as_many_as_asked_for(bare):
    assert len(bare.recommend(likes=["x"], k=2, diversity=0.5)) == 2


def test_a_search_for_someone_without_a_log_goes_by_their_texts(bare):
    bare.record("ann", "rain jacket")
    ranking = bare.search("stove", user="ann")
    assert any("By text alone" in note for note in ranking.notes)
    assert ranking[0].heads.keys() > bare.search("stove")[0].heads.keys()


@pytest.mark.parametrize(
    ("log", "value", "message"),
    [
        ("bare", {"rating": 5}, "no ratings: leave the rating out"),
        ("bare", {"weight": 5}, "no weights: leave the weight out"),
        ("rated", {"weight": 5}, "no weights: give a `rating`"),
        ("weighed", {"rating": 5}, "no ratings: give a `weight`"),
    ],
)
def test_a_value_of_another_kind_of_log_is_refused(request, log, value, message):
    engine = request.getfixturevalue(log)
    with pytest.raises(QkvError, match=message):
        engine.record("ann", "x", **value)
    assert len(engine.record("ann", "x")) == 1


def test_a_file_of_events_counts_by_the_weights_of_the_build(tmp_path):
    log = RATED.drop(columns="rating").assign(event=["view", "purchase", "view", "view", "view"])
    columns = {
        "event": "event",
        "event_weights": {"view": 2, "purchase": 1234567, "refund": -7, ",": 1},
    }
    engine = shop(tmp_path / "events", log, **columns)
    frame = pd.DataFrame({"user": "a", "item": ["x", "y"], "event": ["purchase", "refund"]})
    assert [row["weight"] for row in engine.record_many(frame)] == [1234567, -7]
    with pytest.raises(DataError, match="`event_weights` does not have: buy"):
        engine.record_many(frame.assign(event="buy"))
    with pytest.raises(DataError, match=r"column liked .* may say whether a row is a like"):
        engine.record_many(frame.drop(columns="event").assign(liked=["true", "false"]))


# --- ids ---


def test_whole_numbers_stay_numbers_whoever_is_recorded(tmp_path):
    """One user of letters made every user text in a table for all of them."""
    log = RATED.assign(user=[1, 1, 2, 2, 3])
    engine = shop(tmp_path / "numbers", log)
    engine.record("ann", "x", 5)
    engine.record(9, "x", 5)
    assert list(engine.users) == [1, 2, 3, "ann", 9]
    engine.recommend_all(tmp_path / "all.jsonl")
    users = set(pd.read_json(tmp_path / "all.jsonl", lines=True, dtype=object)["user"])
    assert users == {1, 2, 3, "ann", 9}


def test_in_parquet_a_mixed_column_of_users_is_text_and_that_is_said(tmp_path):
    pytest.importorskip("pyarrow", reason="writing Parquet needs the extra [parquet]")
    engine = shop(tmp_path / "numbers", RATED.assign(user=[1, 1, 2, 2, 3]))
    notes = engine.recommend_all(tmp_path / "all.parquet").notes
    assert not any("user column is text" in note for note in notes)
    engine.record("ann", "x", 5)
    done = engine.recommend_all(tmp_path / "all.parquet")
    assert any("user column is text" in note for note in done.notes)
    assert set(pd.read_parquet(tmp_path / "all.parquet")["user"]) <= {"1", "2", "3", "ann"}


@pytest.fixture
def numbered(tmp_path):
    """The item 300 hides the one that is titled "300"."""
    items = pd.DataFrame({"id": [300, 7, 8], "title": ["Alien", "300", "Heat"]})
    log = pd.DataFrame({"user": ["a", "a", "b"], "item": [300, 8, 7]})
    return qkv.build(tmp_path / "ws", items=items, interactions=log, encoder="corpus")


def test_an_item_whose_id_is_anothers_title_is_said(request, numbered):
    said = "'300' is the id of 300 = Alien and the title of 7 = 300"
    assert said in numbered.record("c", "300").notes[0]
    assert said in numbered.similar("300").notes[0]
    show = request.getfixturevalue("qkv")("-w", numbered.workspace.path, "show", "300")
    assert said in show.stderr
    assert said in numbered.recommend(likes=["300"]).notes[0]
    assert said in numbered.remove("300", dry_run=True).notes[0]
    assert [row["id"] for row in numbered.history("c")] == [300]


def test_a_name_can_be_read_in_one_way_alone(numbered):
    for name, id_ in (("id:300", 300), ("title:300", 7), ("TITLE: 300", 7), (300, 300)):
        assert numbered.show(name)["id"] == id_
        assert not numbered.record("c", name).notes
    with pytest.raises(UnknownIdError, match="no item with the id 'Alien'"):
        numbered.show("id:Alien")
    with pytest.raises(UnknownIdError, match="no item with the title '8'"):
        numbered.show("title:8")


def test_only_takes_titles_where_they_say_so(numbered):
    ranking = numbered.recommend(user="b", only=["title:Alien", "id:8"])
    assert {hit.id for hit in ranking} == {300, 8}
    (note,) = listed_positions(numbered.catalog, ["300", "8"])[1]
    assert "1 of its ids, such as '300', is the title of another item as well" in note


def test_a_whole_id_goes_before_a_form(tmp_path):
    items = pd.DataFrame({"id": ["title:a", "b"], "title": ["one", "a"]})
    engine = qkv.build(tmp_path / "ws", items=items, encoder="corpus")
    assert engine.show("title:a")["title"] == "one"
    assert engine.show("id:title:a")["title"] == "one"
