"""A nightly export becomes the catalog: what is new, differs or is gone, in one build."""

import shutil

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, QkvError
from tests.test_revision import assert_same_arrays, stored_arrays

SQUASH = {"id": 40, "title": "squash rope", "made": 2040}
# What tables have that a second reading could read otherwise.
DISHES = pd.DataFrame(
    {
        "SKU": ["a1", "a2", "a2", "a3", "a4", "a5"],
        "Dish": ["Pancakes", "Soup", "Soup", "Banana bread", "Leek &amp; potato", None],
        "Price": ["$5.00", "6.50", "9.50", "N/A", "7%", "1,200"],
        # Several rows of an item make it a list, of which no entry is split.
        "Colour": ["Red | dark, x", "Blue", "Green", "Red", "Blue", "Red | pale, y"],
        "Added": ["01/03/2024", "2/3/2024", "2/3/2024", "25/12/2023", "unknown", ""],
        "Vegan": ["yes", "no", "no", "yes", "yes", ""],
        "Tags": ["a, b", "b", "b", "a, b, c", "c", "a"],
        "Text": ["<b>one</b> two", "x &lt; y", "x &lt; y", "&amp;lt;", "<p>q</p>", "z"],
    }
)
ROLES = qkv.Columns(id="SKU", title="Dish")


@pytest.fixture
def shop(shop_copy):
    with Engine(shop_copy) as engine:
        yield engine


@pytest.fixture(scope="module")
def dishes_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("dishes") / "ws"
    qkv.build(path, items=DISHES, columns=ROLES, encoder="corpus").close()
    return path


@pytest.fixture
def dishes(dishes_path, tmp_path):
    with Engine(shutil.copytree(dishes_path, tmp_path / "ws")) as engine:
        yield engine


def export(shop_items, without=(), **changed_titles):
    """The items without these ids, with other titles, and a new one."""
    kept = shop_items[~shop_items["id"].isin(without)].copy()
    for id_, title in changed_titles.items():
        kept.loc[kept["id"] == int(id_[1:]), "title"] = title
    return pd.concat([kept, pd.DataFrame([SQUASH])])


def numbers(done):
    return done.added, done.changed, done.removed, done.unchanged


def test_all_three_are_one_build_that_is_as_of_an_add_and_a_remove(shop, shop_items, tmp_path):
    other = Engine(shutil.copytree(shop.workspace.path, tmp_path / "other"))
    done = shop.sync(export(shop_items, without=(2, 4), _9="pear hammer"))
    assert numbers(done) == (1, 1, 2, 7)
    assert (done.n_items, done.interactions_removed) == (9, 8)
    assert [row["command"] for row in shop.builds()] == ["sync", "build"]
    assert shop.items[9]["title"] == "pear hammer"
    assert list(shop.items) == [1, 3, 5, 6, 7, 8, 9, 30, 40]

    other.add(pd.DataFrame([{"id": 9, "title": "pear hammer", "made": 2009}, SQUASH]))
    other.remove([2, 4])
    assert_same_arrays(stored_arrays(shop), stored_arrays(other))
    assert shop.info()["interactions"] == other.info()["interactions"]
    for user in (101, 201):
        mine, theirs = (engine.recommend(user=user, k=9) for engine in (shop, other))
        assert [hit.id for hit in mine] == [hit.id for hit in theirs]
        scores = [[hit.score for hit in ranking] for ranking in (mine, theirs)]
        np.testing.assert_allclose(*scores, rtol=1e-6)


def test_an_unchanged_file_makes_no_build(shop, shop_items):
    shop.sync(export(shop_items))
    before = [row["id"] for row in shop.builds()]
    assert numbers(shop.sync(export(shop_items))) == (0, 0, 0, 11)
    assert [row["id"] for row in shop.builds()] == before


def test_cells_are_read_as_the_build_read_them_so_that_none_seems_changed(dishes):
    assert numbers(dishes.sync(DISHES, ROLES)) == (0, 0, 0, 5)
    # A variant alone differs: the smallest price of the item is the same.
    other = DISHES.assign(Price=DISHES["Price"].replace("9.50", "8.50"))
    assert numbers(dishes.sync(other, ROLES)) == (0, 1, 0, 4)
    assert [row["id"] for row in dishes.items.list(where="Price = 8.5")] == ["a2"]
    in_other_order = other.sort_values("SKU", ascending=False, kind="stable")
    assert numbers(dishes.sync(in_other_order, ROLES)) == (0, 0, 0, 5)


# The same dates and prices as two spreadsheets write them, and a cell that is no price.
PRICED = {"id": [1, 2, 3, 4], "title": ["red pot", "blue pot", "grey pan", "old pan"]}
HERE = {"price": ["1299", "15", "ask us", "16"], "added": ["2024-03-15", "", "2024-03-16", ""]}
THERE = {"price": ["1.299,00", "15", "ask us", "16"], "added": ["15.03.2024", "", "16.3.2024", ""]}


def test_a_value_that_is_written_otherwise_is_no_change_and_is_counted(tmp_path):
    here, there = pd.DataFrame(PRICED | HERE), pd.DataFrame(PRICED | THERE)
    columns = qkv.Columns(types={"price": "number"})
    with qkv.build(tmp_path / "ws", items=here, columns=columns, encoder="corpus") as engine:
        done = engine.sync(there)
        assert numbers(done) == (0, 0, 0, 4)
        assert len(engine.builds()) == 1
        (note,) = [note for note in done.notes if "written otherwise" in note]
        assert note.startswith("2 items have")
        assert "'1299' and is '1.299,00'" in note
        # Another value beside it is a change, as is another cell that could not be read.
        changed = there.assign(price=["1.299,00", "15", "sold out", "17"])
        assert numbers(engine.sync(changed)) == (0, 2, 0, 2)
        assert engine.show(3)["original"]["price"] == "sold out"
        assert not any("otherwise" in note for note in engine.sync(changed[1:], yes=True).notes)


def test_other_words_of_a_date_are_a_change(tmp_path):
    vases = pd.DataFrame(
        {
            "id": [1, 2, 3],
            "title": ["blue vase", "red vase", "jar"],
            "made": ["Song dynasty (960–1279)", "c. 1890", "1700-1750"],
        }
    )
    columns = qkv.Columns(types={"made": "date"})
    with qkv.build(tmp_path / "ws", items=vases, columns=columns, encoder="corpus") as engine:
        other = vases.assign(made=["Liao dynasty (960–1279)", "c. 1890", "1700-1750"])
        assert numbers(engine.sync(other)) == (0, 1, 0, 2)
        assert engine.show(1)["original"]["made"].startswith("Liao")


def test_kept_items_are_counted(shop_path, shop_items, tmp_path, qkv):
    """`qkv` here is the command line."""
    path = shutil.copytree(shop_path, tmp_path / "ws")
    shop_items[:7].assign(made=1990).to_csv(tmp_path / "few.csv", index=False)
    asked = ("-w", path, "sync", tmp_path / "few.csv", "--keep-missing")
    assert "7 changed, 0 removed, 3 missing and kept; 10 items." in qkv(*asked).stderr
    answer = qkv(*asked, "--format", "json")
    assert "nothing to change, 3 missing and kept; 10 items." in answer.stderr
    assert (answer.json()["unchanged"], answer.json()["kept"]) == (7, 3)


def test_more_than_a_fifth_is_removed_on_request_alone(shop, shop_items):
    with pytest.raises(QkvError, match=r"3 of 10 items.*`yes`.*`keep_missing`"):
        shop.sync(shop_items[:7])
    assert shop.n_items == 10
    assert numbers(shop.sync(shop_items[:7].assign(made=1990), keep_missing=True)) == (0, 7, 0, 0)
    assert shop.n_items == 10
    assert numbers(shop.sync(shop_items[:8].assign(made=1990))) == (0, 1, 2, 7)
    assert numbers(shop.sync(shop_items[:2].assign(made=1990), yes=True)) == (0, 0, 6, 2)


def test_a_column_that_the_file_lacks_stays(shop, shop_items):
    done = shop.sync(export(shop_items, _9="pear hammer").drop(columns="made"))
    assert numbers(done) == (1, 1, 0, 9)
    assert (shop.items[9]["made"], shop.items[40]["made"]) == (2009, None)
    assert any("made" in note and "as they are" in note for note in done.notes)


def test_an_item_whose_file_cannot_be_read_stays(tmp_path):
    talks = tmp_path / "talks"
    talks.mkdir()
    for number in range(8):
        (talks / f"talk{number}.txt").write_text(f"A talk on otters\n\nand number {number}.\n")
    with qkv.build(tmp_path / "ws", items=talks, encoder="corpus") as engine:
        (talks / "talk1.txt").write_bytes(b"")
        (talks / "talk2.txt").unlink()
        done = engine.sync(talks)
        assert numbers(done) == (0, 0, 1, 6)
        assert (done.kept, done.n_items) == (1, 7)
        assert any("talk1.txt" in note for note in done.notes)
        assert "number 1" in engine.show("talk1")["text"]


@pytest.fixture
def talks_with_texts(tmp_path):
    """A table of talks, a file of the text of each, and the build of both."""
    texts = tmp_path / "talks"
    texts.mkdir()
    for number in range(8):
        (texts / f"t{number}.md").write_text(f"---\nspeaker: Ann{number}\n---\n\nOtters {number}.")
    (texts / "t5.md").unlink()
    (texts / "t5.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nOtters 5.\n")
    table = pd.DataFrame({"id": [f"t{n}" for n in range(8)], "title": list("abcdefgh")})
    columns = qkv.Columns(texts=f"{texts}/{{id}}.*")
    with qkv.build(tmp_path / "ws", items=table, columns=columns, encoder="corpus") as engine:
        yield engine, table, texts, columns


@pytest.mark.parametrize("command", ["sync", "update"])
def test_an_item_without_its_text_this_time_keeps_it(talks_with_texts, command):
    engine, table, texts, columns = talks_with_texts
    before = {id_: engine.show(id_) for id_ in ("t1", "t2", "t5")}
    (texts / "t1.md").unlink()
    (texts / "t2.md").write_bytes(b"")
    (texts / "t5.vtt").unlink()
    (texts / "t3.md").write_text("Weirs now.")
    if command == "sync":
        done = engine.sync(table, columns)
        assert numbers(done) == (0, 1, 0, 7)
    else:
        done = engine.add(table, columns, update=True)
    assert any("3 items keep the text" in note and "'t1'" in note for note in done.notes)
    assert not any("text: 3 cells emptied" in note for note in done.notes)
    assert {id_: engine.show(id_) for id_ in before} == before
    assert engine.show("t1")["speaker"] == "Ann1"
    assert engine.show("t3")["text"] == "Weirs now."
    assert engine.show("t3").get("speaker") is None


def test_a_file_keeps_its_id_whatever_is_beside_it(tmp_path):
    talks = tmp_path / "talks"
    talks.mkdir()
    for name in ("a.md", "b.md", "b.txt", "c.md", "d.md", "e.md"):
        (talks / name).write_text(f"A talk on otters\n\nof {name}.\n")
    with qkv.build(tmp_path / "ws", items=talks, encoder="corpus") as engine:
        (talks / "b.txt").unlink()
        assert numbers(engine.sync(talks)) == (0, 0, 1, 5)
        assert "b.md" in engine.show("b.md")["text"]
        (talks / "b.md").write_bytes(b"")
        assert numbers(engine.sync(talks)) == (0, 0, 0, 4)

        (talks / "a.txt").write_text("Another text.")
        for change in (engine.sync, engine.add):
            with pytest.raises(DataError, match=r"a\.md, a\.txt .*'a'.*rename"):
                change(talks)
        assert len(engine.items) == 5
        (talks / "a.txt").rename(talks / "f.txt")
        assert numbers(engine.sync(talks)) == (1, 0, 0, 4)


def test_a_file_of_a_folder_has_the_id_of_its_path_from_wherever_it_is_named(tmp_path):
    talks = tmp_path / "talks"
    for name in ("2023/a/intro.md", "2023/b/intro.md", "2023/b/boats.md"):
        (talks / name).parent.mkdir(parents=True, exist_ok=True)
        (talks / name).write_text(f"# On {name}\n\nOtters of {name}.\n")
    with qkv.build(tmp_path / "ws", items=talks, encoder="corpus") as engine:
        ids = ["2023/a/intro.md", "2023/b/intro.md", "boats"]
        assert list(engine.items.to_frame()["id"]) == ids
        (talks / ids[0]).write_text("# Changed\n\nBadgers.\n")
        assert engine.add(talks / "2023" / "a").replaced == 1
        assert engine.show(ids[0])["title"] == "Changed"
        assert engine.add(str(talks / "2023" / "*" / "intro.md")).replaced == 2
        assert engine.add(talks / ids[1]).replaced == 1
        assert list(engine.items.to_frame()["id"]) == ids
        moved = talks.rename(tmp_path / "moved")
        assert numbers(engine.sync(moved)) == (0, 0, 0, 3)


def test_tables_that_were_joined_are_joined_again(tmp_path):
    goods = pd.DataFrame({"Code": ["a1", "a2", "a3"], "name": ["Vase", "Bowl", "Kiln"]})
    details = pd.DataFrame(
        {
            "Code": ["a1", "a2", "a2", "a3"],
            "colour": ["red", "blue", "green", "grey"],
            "story": ["Found in a river", "Made of clay", "Made of clay", "Burns peat"],
        }
    )
    columns = qkv.Columns(id="Code")
    build = qkv.build(tmp_path / "w", goods, join=details, columns=columns, encoder="corpus")
    with build as engine:
        assert numbers(engine.sync(goods, join=details)) == (0, 0, 0, 3)
        details.loc[0, "story"] = "Found in a lake"
        done = engine.sync(goods, join=details)
        assert numbers(done) == (0, 1, 0, 2)
        assert not any("no column" in note for note in done.notes)
        assert engine.show("a1")["story"] == "Found in a lake"
        more = pd.DataFrame({"Code": ["a4"], "name": ["Jug"]})
        of_more = pd.DataFrame({"Code": ["a4"], "colour": ["white"], "story": ["Holds milk"]})
        assert engine.add(more, join=of_more).added == 1
        assert engine.show("a4")["colour"] == "white"
        assert engine.search("milk")[0].id == "a4"
