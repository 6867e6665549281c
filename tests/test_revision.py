"""Items join and leave: words as of a fresh build, tastes as they were, and no revision lost."""

import shutil

import numpy as np
import pandas as pd
import pytest

import qkvsearch as qkv
from qkvsearch._utils.callbacks import silent
from qkvsearch.engine import Engine
from qkvsearch.errors import DataError, QkvError, UnknownIdError
from qkvsearch.learn import add
from qkvsearch.learn import merge as merging
from qkvsearch.learn.merge import merged_contents
from qkvsearch.models.user_vectors import ImplicitFactors
from qkvsearch.store import Workspace
from qkvsearch.store.array_files import read_array
from qkvsearch.text.pretrained.static import find_package

pytestmark = pytest.mark.usefixtures("former_builds_stay")
MORE = pd.DataFrame(
    {
        "id": [31, 4, 0],
        "title": ["copper kettle", "rubber mallet", "crab apple"],
        "made": [2011, 2012, 2013],
    }
)


@pytest.fixture
def path(shop_path, tmp_path):
    return shutil.copytree(shop_path, tmp_path / "shop")


def add_items(path, *args, **kwargs):
    return add.add_items(Workspace(path), *args, **kwargs)


def remove_items(path, *args, **kwargs):
    return add.remove_items(Workspace(path), *args, **kwargs)


def stored_arrays(engine, group=""):
    """Of all segments, as they would be merged."""
    contents = merged_contents(engine.snapshot, silent)
    shared = contents.shared.items()
    found = {name[:-4]: read_array(file) for name, file in shared if name.endswith(".npy")}
    found |= contents.arrays
    return {name: array for name, array in found.items() if name.startswith(group)}


def assert_same_arrays(one, other):
    assert set(one) == set(other)
    for name, array in one.items():
        assert array.dtype == other[name].dtype, name
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def ids_of(engine):
    return list(engine.catalog.ids("items"))


def histories(engine):
    """What each user met, by ids: {user: {item: rating}}."""
    ids = engine.catalog.ids("items").texts
    found = {}
    for row, user in enumerate(engine.catalog.ids("users")):
        met = engine.models.history(row)
        assert (np.diff(met.positions) > 0).all()
        found[user] = {ids[i]: float(r) for i, r in zip(met.positions, met.ratings, strict=True)}
    return found


def state(path):
    """The current build's folder, whether it is whole, and its items."""
    with Engine(path) as engine:
        return engine.snapshot.name, engine.snapshot.damaged(), ids_of(engine)


# --- the words ---


def test_an_added_item_is_found_at_once_and_its_parts_add_up(path, assert_adds_up):
    done = add_items(path, MORE)
    assert (done.added, done.replaced, done.removed, done.n_items) == (2, 1, 0, 12)
    with Engine(path) as engine:
        assert ids_of(engine) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 30, 31]
        assert engine.search("kettle")[0].id == 31
        assert engine.search("mallet")[0].id == 4
        assert "steel hammer" not in [hit.title for hit in engine.search("steel", k=20)]
        for query in ("crab apple", "hammer"):
            ranking = engine.search(query, k=20)
            for i, hit in enumerate(ranking):
                assert_adds_up([part.value for part in ranking.explain(i)], hit.score)
        assert engine.search("crab apple", heads="lsa")[0].id == 0


@pytest.mark.skipif(find_package() is None, reason="needs wordllama")
def test_static_keys_are_those_of_a_fresh_build_where_its_weights_are(shop_items, tmp_path):
    swapped = shop_items.iloc[:2].assign(title=shop_items["title"][1::-1].tolist())
    qkv.build(tmp_path / "ws", items=shop_items, encoder="static").close()
    add_items(tmp_path / "ws", swapped)
    items = pd.concat([swapped, shop_items])
    with (
        qkv.build(tmp_path / "fresh", items=items, encoder="static") as fresh,
        Engine(tmp_path / "ws") as revised,
    ):
        assert_same_arrays(stored_arrays(revised, "static"), stored_arrays(fresh, "static"))


def test_who_comes_and_goes_again_leaves_the_build_as_it_was(path, shop):
    add_items(path, MORE[MORE["id"] != 4])
    remove_items(path, [0, "copper kettle"])
    with Engine(path) as engine:
        assert_same_arrays(stored_arrays(engine), stored_arrays(shop))
        assert list(engine.catalog.all_cells()) == list(shop.catalog.all_cells())


def test_a_number_keeps_its_spelling_whatever_joins(tmp_path):
    items = pd.DataFrame({"id": [1, 2], "title": ["pot", "pan"], "size": [5, 7]})
    columns = qkv.Columns(text=["title", "size"])
    more = pd.DataFrame({"id": [3], "title": ["jug"], "size": [5.5]})
    qkv.build(tmp_path / "ws", items=items, columns=columns).close()
    add_items(tmp_path / "ws", more)
    for _ in range(2):
        with Engine(tmp_path / "ws") as engine:
            assert [str(row["size"]) for row in map(engine.show, [1, 2, 3])] == ["5", "7", "5.5"]
            assert [hit.id for hit in engine.search("5", heads="lexical")] == [1]
            assert [hit.id for hit in engine.search("5.5", heads="lexical")] == [3]
            engine.compact()


def test_removing_needs_no_encoder_and_adding_names_the_one_that_is_gone(
    shop_items, tiny_bert, tmp_path
):
    model = shutil.copytree(tiny_bert, tmp_path / "model")
    qkv.build(tmp_path / "ws", items=shop_items, encoder=str(model)).close()
    shutil.rmtree(model)
    remove_items(tmp_path / "ws", 4)
    before = state(tmp_path / "ws")
    with pytest.raises(QkvError, match="model"):
        add_items(tmp_path / "ws", MORE)
    assert state(tmp_path / "ws") == before


# --- the tastes ---


def test_an_added_item_changes_no_recommendation_but_is_one_that_nobody_met(path, shop):
    add_items(path, MORE)
    with Engine(path) as engine:
        assert histories(engine) == histories(shop)
        for user in (101, 203):
            before = {hit.id: hit.score for hit in shop.recommend(user=user, k=20)}
            after = {hit.id: hit.score for hit in engine.recommend(user=user, k=20)}
            assert {id_: after.pop(id_) for id_ in before} == pytest.approx(before, abs=1e-6)
            assert after == {0: 0.0, 31: 0.0}
        assert {hit.id for hit in engine.similar("crab apple", k=3)} < {1, 2, 3, 9}


def test_a_removed_item_is_never_shown_and_leaves_with_its_interactions(path, shop):
    expected = histories(shop)
    gone = sum(len({"4", "30"} & met.keys()) for met in expected.values())
    done = remove_items(path, ["steel hammer", 30])
    assert (done.removed, done.interactions_removed) == (2, gone)
    with Engine(path) as engine:
        info = engine.info()
        assert info["items"] == 8
        assert info["interactions"] == shop.info()["interactions"] - gone
        assert info["rating_scale"] == shop.info()["rating_scale"]
        for met in expected.values():
            met.pop("4", None), met.pop("30", None)
        assert histories(engine) == expected
        rankings = [
            engine.search("hammer", k=20), engine.recommend(user=202, k=20),
            engine.recommend(likes=[5], k=20, explain=True), engine.similar(5, k=20),
        ]  # fmt: skip
        assert all({4, 30}.isdisjoint(hit.id for hit in ranking) for ranking in rankings)
        assert "steel hammer" not in str([ranking.to_records() for ranking in rankings])
        with pytest.raises(UnknownIdError):
            engine.similar("steel hammer")


def test_recommendations_are_the_exact_solve_among_the_items_that_are_left(path, shop):
    gone = ids_of(shop).index(6)  # 101 never met it
    remove_items(path, [6])
    former = shop.models.implicit
    embeddings = np.delete(former.item_embeddings, gone, axis=0).astype(np.float64)
    left = ImplicitFactors(
        embeddings, embeddings.T @ embeddings, former.alpha0, former.reg, former.nu,
        former.n_items - 1,
    )  # fmt: skip
    with Engine(path) as engine:
        met = engine.models.history(engine.catalog.users.position(101))
        preferences = shop.models.preferences
        factors = preferences.multipliers()
        scores = (
            factors["collaborative"] * embeddings @ left.fold_in(met.positions, met.confidences)
        )
        rows = [ids_of(shop).index(id_) for id_ in ids_of(engine)]
        met_before = [rows[row] for row in met.positions]
        by_neighbours = preferences.neighbours.scores(met_before, met.confidences)[rows]
        scores += factors["neighbours"] * by_neighbours
        for hit in engine.recommend(user=101, k=20):
            assert hit.score == pytest.approx(scores[ids_of(engine).index(hit.id)], abs=1e-6)


def test_with_every_item_that_anyone_met_gone_there_is_nothing_to_go_by(path, shop):
    met = set().union(*histories(shop).values())
    remove_items(path, met)
    with Engine(path) as engine:
        assert engine.info()["interactions"] == 0
        assert len(engine.recommend(user=101)) == 0
        assert engine.search("apple")[0].id == 9


def test_what_was_recorded_stays_and_counts_again_when_its_item_is_back(path):
    with Engine(path) as engine:
        engine.record("eve", "steel hammer", 5)
    remove_items(path, "steel hammer")
    with Engine(path) as engine:
        assert engine.info()["recorded"] == 1
        assert engine.snapshot.records.user("eve").interactions == []
    add_items(path, pd.DataFrame({"id": [4], "title": ["steel hammer"], "made": [2004]}))
    with Engine(path) as engine:
        position = engine.catalog.titles.item_position(4)
        rows = engine.snapshot.records.user("eve").interactions
        assert [row[:2] for row in rows] == [(position, 5.0)]


def test_a_text_id_makes_all_ids_text_from_then_on(path, shop):
    done = add_items(path, pd.DataFrame({"id": ["x1"], "title": ["saw"], "made": [2000]}))
    assert "All ids are text now" in done.notes[-1]
    with Engine(path) as engine:
        assert ids_of(engine) == sorted([*map(str, ids_of(shop)), "x1"])
        assert histories(engine) == histories(shop)
        scores = {hit.id: hit.score for hit in engine.recommend(user=103, k=20)}
        for hit in shop.recommend(user=103, k=20):
            assert scores[str(hit.id)] == pytest.approx(hit.score, abs=1e-6)
    remove_items(path, "saw")
    with Engine(path) as engine:
        assert ids_of(engine) == sorted(map(str, ids_of(shop))), "an id that was given stays so"
        assert engine.show("30")["id"] == "30"


# --- the files ---


def test_an_addition_costs_what_is_added(path, monkeypatch):
    monkeypatch.setattr(merging, "MAX_CHANGED_SHARE", 1)

    def size():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())

    before = size()
    for number in (50, 51, 52):
        add_items(path, item(number))
    with Engine(path) as engine:
        own = [segment for segment in engine.snapshot.segments if segment.n_rows == 1]
        assert len(own) == 3
        assert not any(name.startswith("interactions") for name in own[-1].files)
    assert (size() - before) / 3 < 40_000, "a page for each table, and a block for each array"


# --- crashes, and others at work ---


def item(number):
    return pd.DataFrame({"id": [number], "title": [f"thing {number}"], "made": [2000]})


# --- what is refused, and what is said ---


def test_an_unknown_item_is_named_and_none_is_removed(path):
    before = state(path)
    with pytest.raises(UnknownIdError, match="no item 'claw hamer'; did you mean claw hammer"):
        remove_items(path, [1, "claw hamer"])
    with pytest.raises(UnknownIdError, match="title of 2 items"):
        remove_items(path, [1, "ladder"])
    with pytest.raises(QkvError, match="every item"):
        remove_items(path, where="made > 0")
    with pytest.raises(QkvError, match="one of the two"):
        remove_items(path)
    with pytest.raises(QkvError, match="one of the two"):
        remove_items(path, [1], where="made > 0")
    assert state(path) == before


def test_a_condition_that_no_item_meets_publishes_nothing(path):
    before = state(path)
    assert remove_items(path, where="made > 3000").removed == 0
    assert state(path) == before


def test_an_id_of_numpy_is_an_id(path):
    assert remove_items(path, np.int64(30)).removed == 1
    assert remove_items(path, np.array([8, 9])).removed == 2


def test_items_are_removed_by_a_condition(path):
    assert remove_items(path, where="made < 2008").removed == 7
    assert state(path)[2] == [8, 9, 30]


def test_a_file_without_texts_is_refused_and_one_that_lacks_some_is_warned_of(
    things_path, tmp_path
):
    path = shutil.copytree(things_path, tmp_path / "things")
    searched = Engine(path).snapshot.facts["text_columns"]
    before = state(path)
    bare = pd.DataFrame({"video_id": ["n1"], "title": ["Sourdough"], "about": ["bread"]})
    with pytest.raises(DataError, match=r"no column title, .*columns: video_id, words, about"):
        add_items(path, bare.rename(columns={"title": "words"}))
    with pytest.raises(DataError, match=rf"no column {searched[1]}.*an error, since `strict`"):
        add_items(path, bare, qkv.Columns(strict=True))
    with pytest.raises(DataError, match=f"{len(searched)} columns here .* names 1"):
        add_items(path, bare, qkv.Columns(text=["title"]))
    assert state(path) == before
    notes = add_items(path, bare).notes
    assert f"Warning: items: no column {searched[1]}" in notes[1]
    assert notes[1].endswith("1 row left empty there")


def test_columns_by_other_names_are_told_in_the_builds_order(path):
    more = pd.DataFrame({"sku": [50], "Made": [1999], "title": ["no"], "label": ["brass bell"]})
    done = add_items(path, more, qkv.Columns(id="sku", text=["label"]))
    assert done.notes == ["items: 1 row read: 1 kept, 0 duplicates combined, 0 skipped"]
    with Engine(path) as engine:
        assert list(engine.catalog.all_cells())[-1] == (50, "brass bell", 1999)


def test_a_column_of_the_exact_name_goes_before_one_in_another_case(tmp_path):
    items = pd.DataFrame({"SKU": ["a1", "a2"], "Title": ["pan", "pot"]})
    qkv.build(tmp_path / "ws", items=items).close()
    more = pd.DataFrame(
        {"sku": ["b1"], "SKU": ["a2"], "TITLE": ["no"], "Title": ["kettle"], "title": ["no"]}
    )
    assert add_items(tmp_path / "ws", more).replaced == 1
    with Engine(tmp_path / "ws") as engine:
        assert engine.show("a2")["title"] == "kettle"
        assert ids_of(engine) == ["a1", "a2"]


def test_a_named_column_of_texts_goes_before_the_usual_one(tmp_path):
    items = pd.DataFrame({"SKU": ["a1", "a2"], "Name": ["pan", "pot"]})
    qkv.build(tmp_path / "ws", items=items).close()
    more = pd.DataFrame({"SKU": ["a2"], "Name": ["no"], "label": ["kettle"]})
    add_items(tmp_path / "ws", more, qkv.Columns(text=["label"]))
    with Engine(tmp_path / "ws") as engine:
        assert engine.show("a2")["Name"] == "kettle"


def test_rows_are_reported_and_other_columns_said(path):
    more = pd.DataFrame(
        {"id": [50.0, 50.0, np.nan], "title": ["a", "b", "c"], "shelf": ["x", "y", "z"]}
    )
    note, warning = add_items(path, more).notes
    assert warning.startswith("Warning: items: 1 of 3 rows were skipped")
    assert note == (
        "items: 3 rows read: 1 kept, 1 duplicate combined, 1 skipped (1 without an id, first "
        "row 2); left out, because the catalog has no such column: shelf; "
        "left empty, because the file has no such column: made; "
        "1 item with several texts of title: the first one counts; "
        "2 rows were combined into 1 item, such as 50 of 2 rows"
    )
    with Engine(path) as engine:
        assert list(engine.catalog.all_cells())[-1] == (50, "a", None)


def test_a_year_comes_from_the_title_as_in_a_build(tmp_path):
    qkv.build(tmp_path / "ws", items=pd.DataFrame({"id": [1], "title": ["Heat (1995)"]})).close()
    add_items(tmp_path / "ws", pd.DataFrame({"id": [2], "title": ["Fargo (1996)"]}))
    with Engine(tmp_path / "ws") as engine:
        assert list(engine.catalog.all_cells()) == [
            (1, "Heat (1995)", 1995),
            (2, "Fargo (1996)", 1996),
        ]


def test_a_catalog_titled_by_its_ids_takes_bare_ids(shop_log, tmp_path):
    qkv.build(tmp_path / "ws", interactions=shop_log).close()
    add_items(tmp_path / "ws", pd.DataFrame({"id": [77]}))
    with Engine(tmp_path / "ws") as engine:
        assert list(engine.catalog.all_cells())[-1] == (77, "77")


def test_the_facts_count_all_revisions_below_the_rows_of_the_build(path, shop):
    add_items(path, MORE)
    remove_items(path, [0, 1])
    with Engine(path) as engine:
        gone = shop.info()["interactions"] - engine.info()["interactions"]
        assert engine.info()["items"] == 10
        assert engine.info()["rows"] == [
            *shop.info()["rows"],
            f"since then: 2 added, 1 replaced, 2 removed with {gone} interactions",
        ]


def test_after_forget_the_interactions_of_removed_items_are_not_counted(path):
    remove_items(path, [1, 2])
    with Engine(path) as engine:
        engine.forget(103)
    for items in ([3], [4, 5]):
        remove_items(path, items)
    with Engine(path) as engine:
        line = engine.info()["rows"][-1]
    assert line == "since then: 0 added, 0 replaced, 5 removed"


def test_a_number_that_only_a_removed_item_had_is_not_suggested(path):
    with Engine(path) as engine:
        suggested = "Did you mean made:2010?"
        assert suggested in engine.search("2010").notes
        engine.remove([30])
        assert suggested not in engine.search("2010").notes
