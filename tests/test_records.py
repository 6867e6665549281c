"""Records are data: listed, appended from a log, learned from, forgotten, whatever is built."""

import threading

import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.errors import QkvError, UnknownIdError
from qkvsearch.rank.listing import Listing

THINGS = pd.DataFrame({"id": ["x", "y", "z", "w"], "title": ["jacket", "trousers", "stove", "gas"]})
LOG = pd.DataFrame(
    {
        "user": ["ann", "ann", "bob", "bob", "cy"],
        "item": ["x", "y", "x", "z", "w"],
        "rating": [5, 1, 4, 2, 3],
        "time": [1_600_000_000 + k for k in range(5)],
    }
)


def shop(path, log=LOG, items=THINGS, **columns):
    columns = qkv.Columns(**columns) if columns else None
    return qkv.build(path, items=items, interactions=log, columns=columns, encoder="corpus")


@pytest.fixture
def engine(tmp_path):
    with shop(tmp_path / "shop") as engine:
        yield engine


def marks(engine, user):
    return {row["id"]: row["recorded"] for row in engine.history(user)}


# --- the listing ---


def test_records_are_listed_the_last_first_with_what_undo_takes_together(engine):
    engine.record("ann", "z", 3)
    frame = pd.DataFrame({"user": ["new", "bob"], "item": ["x", "w"], "time": "2024-05-01"})
    engine.record_many(frame)
    listing = engine.records()
    assert listing.names == (
        "number", "user", "item", "title", "rating", "weight", "time", "batch", "recorded",
        "client", "learned",
    )  # fmt: skip
    assert [(row["number"], row["user"], row["item"], row["batch"]) for row in listing] == [
        (3, "bob", "w", 2), (2, "new", "x", 2), (1, "ann", "z", 1)
    ]  # fmt: skip
    assert listing[0]["time"] == "2024-05-01 00:00:00"
    assert (listing[2]["title"], listing[2]["rating"], listing[2]["learned"]) == ("stove", 3, False)
    page = engine.records(k=1, offset=1)
    assert ([row["number"] for row in page], page.total) == ([2], 3)
    assert [row["number"] for row in engine.records("ann")] == [1]
    assert engine.records("cy").total == 0
    with pytest.raises(UnknownIdError, match=r"^no user 'nev'$"):
        engine.records("nev")


def test_what_was_recorded_of_an_item_that_left_is_listed_without_a_title(engine):
    engine.record("ann", "z", 3)
    engine.remove("z")
    assert [(row["item"], row["title"]) for row in engine.records()] == [("z", None)]


# --- builds that learn ---


def test_what_a_build_has_learned_from_counts_once_and_comes_back_with_a_rollback(engine):
    engine.record("ann", "z", 4)
    engine.record("new", "x", 5)
    before = engine.history("ann").to_records()
    engine.learn()
    assert [row["learned"] for row in engine.records()] == [True, True]
    assert marks(engine, "ann") == {"x": False, "y": False, "z": False}
    assert engine.info()["recorded"] == 0
    assert engine.users["new"]["interactions"] == 1
    with pytest.raises(QkvError, match=r"learned .*rollback"):
        engine.undo_record()
    engine.record("ann", "w", 2)
    assert marks(engine, "ann") == {"x": False, "y": False, "z": False, "w": True}
    assert [row["learned"] for row in engine.records()] == [False, True, True]
    assert [row["id"] for row in engine.undo_record()] == ["w"]
    engine.rollback()
    assert engine.history("ann").to_records() == before
    assert [row["id"] for row in engine.undo_record()] == ["x"]


def test_what_is_recorded_counts_even_where_all_records_before_were_lost(engine):
    engine.record("ann", "z", 4)
    engine.learn()
    for path in engine.workspace.path.glob("records.*"):
        path.unlink()
    engine.record("ann", "w", 4)
    assert marks(engine, "ann") == {"x": False, "y": False, "z": False, "w": True}


def test_weights_that_were_learned_are_not_added_twice(tmp_path):
    log = LOG.rename(columns={"rating": "quantity"})
    with shop(tmp_path / "weighed", log, weight="quantity") as engine:
        engine.record("ann", "x", weight=3)
        weight = {row["id"]: row["weight"] for row in engine.history("ann")}
        engine.learn()
        assert {row["id"]: row["weight"] for row in engine.history("ann")} == weight
        assert weight["x"] == 8


# --- ids ---


def test_spellings_of_one_user_and_item_are_one_where_ids_are_folded(tmp_path):
    with shop(tmp_path / "folded", items=THINGS.assign(id=list("XYZW")), fold_ids=True) as engine:
        engine.record("New", "z", 5)
        engine.record("NEW", "y", 5)
        engine.record("ANN", "w", 4)
        assert {row["item"] for row in engine.records("new")} == {"Y", "Z"}
        assert set(marks(engine, "nEw")) == {"Y", "Z"}
        assert list(engine.users) == ["ann", "bob", "cy", "New"]
        assert marks(engine, "ann")["W"]
        assert engine.show("Y")["users"] == 2


@pytest.mark.parametrize("user", ["\ud800", None, "", " ", True, ["a"], b"a", float("nan")])
def test_what_is_nobodys_id_is_refused(engine, user):
    with pytest.raises(QkvError, match="user"):
        engine.record(user, "x", 3)
    assert not engine.records()


@pytest.mark.parametrize("rating", ["5", True, [5], 1j, None])
def test_a_rating_is_a_number(engine, rating):
    if rating is None:
        assert engine.record("ann", "z")
        return
    with pytest.raises(QkvError, match="`rating` must be a number"):
        engine.record("ann", "z", rating)


# --- beside others ---


def test_recording_waits_for_no_build(engine):
    done = []
    with engine.workspace.writing("build"):
        thread = threading.Thread(target=lambda: done.append(engine.record("ann", "z", 3)))
        thread.start()
        thread.join(timeout=300)
        assert len(done) == 1


def test_a_listing_shows_itself_as_a_table_that_hides_nothing():
    rows = [{"user": f"<b>{n}\u202e", "rating": None} for n in range(30)]
    listing = Listing(rows, 40, ("user", "rating"), notes=["one\ntwo"])
    page = listing._repr_html_()
    assert "<caption>Listing: 30 of 40 rows, 20 of them shown</caption>" in page
    assert "<tr><th>user</th><th>rating</th></tr>" in page
    assert r"<tr><td>&lt;b&gt;0\u202e</td><td></td></tr>" in page
    assert (page.count("<tr>"), r"<p>one\ntwo</p>" in page) == (21, True)
    lines = repr(listing).splitlines()
    assert (len(lines), lines[-1]) == (22, r"one\ntwo")
    assert "'<b>0" in lines[1]
    assert repr(Listing([], 1, ("user",))) == "Listing: 0 of 1 row"
