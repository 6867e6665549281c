"""Looking up items and users by what people call them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qkvsearch.errors import QkvError, UnknownIdError
from qkvsearch.store import CatalogRows, Workspace
from qkvsearch.store.catalog.file import write_catalog
from qkvsearch.store.catalog.segment import SegmentCatalog
from qkvsearch.store.catalog.title_keys import title_key


@pytest.mark.parametrize("spelling", [30, "30", 30.0, " 30 "])
def test_an_item_is_found_by_its_id_however_written(catalog, spelling):
    assert catalog.titles.item_position(spelling) == 3


@pytest.mark.parametrize(
    "title",
    ["Teapot, The (1999)", "Teapot, The", "The Teapot", "the teapot (1999)", "TEAPOT", " teapot "],
)
def test_an_item_is_found_by_its_title_without_year_article_and_case(catalog, title):
    assert catalog.titles.item_position(title) == 0


@pytest.mark.parametrize("title", ["l'été (BLEU)", "L'Été"])
def test_brackets_at_the_end_of_a_title_may_be_left_out(catalog, title):
    assert catalog.titles.item_position(title) == 4


def test_a_title_that_is_all_brackets_keeps_them():
    assert title_key("(500)") == "(500)"


def test_the_year_tells_two_equal_titles_apart(catalog):
    assert catalog.titles.item_position("Anchor (1950)") == 1
    assert catalog.titles.item_position("Anchor (2004)") == 2


def test_an_ambiguous_title_lists_the_ids(catalog):
    with pytest.raises(UnknownIdError, match="title of 2 items; give an id") as error:
        catalog.titles.item_position("the anchor")
    assert "7 = Anchor (1950), 8 = Anchor (2004)" in str(error.value)


def test_an_exact_title_that_two_items_have_lists_them(tmp_path, make_contents):
    rows = [(i, "Rope", 2000, "x", 1.0) for i in (3, 1)]
    Workspace(tmp_path).publish(make_contents(rows), "build")
    with pytest.raises(UnknownIdError, match=r"1 = Rope \(2000\), 3 = Rope \(2000\)"):
        Workspace(tmp_path).open().catalog.titles.item_position("Rope")


def test_an_id_without_its_zeros_names_the_one_with_them(tmp_path, make_contents):
    rows = [(i, f"Rope {i}", 2000, "x", 1.0) for i in ("0013", "0003")]
    Workspace(tmp_path).publish(make_contents(rows), "build")
    with pytest.raises(UnknownIdError, match="no item '00003'; did you mean 0003"):
        Workspace(tmp_path).open().catalog.titles.item_position("00003")


@pytest.mark.parametrize(
    ("wanted", "near"),
    [
        *[(title, "Kettle (1995)") for title in ("Ketle (1995)", "kettel (1995)", "ketle")],
        *[(title, "Kettle (1995)") for title in ("the kettle (1996)x", "kettle x")],
        ("teapt", "Teapot, The"),
        ("anch", "Anchor"),
    ],
)
def test_an_unknown_title_names_near_ones(catalog, wanted, near):
    with pytest.raises(UnknownIdError, match=f"no item .*did you mean {re.escape(near)}"):
        catalog.titles.item_position(wanted)


@pytest.mark.parametrize(
    "wanted", ["", None, float("nan"), "%", "zzz", "'; DROP", "9" * 40, "word " * 3000, "1e400"]
)
def test_an_unknown_item_like_no_other_is_just_unknown(catalog, wanted):
    with pytest.raises(UnknownIdError, match=r"no item 'zzz'$" if wanted == "zzz" else "no item"):
        catalog.titles.item_position(wanted)


def test_text_ids_are_not_numbers(tmp_path, make_contents):
    films = [(name, "x" + name, 2000, "War", 1.0) for name in ("007", "7", "a b")]
    Workspace(tmp_path).publish(make_contents(films, users=("ann", "07")), "build")
    catalog = Workspace(tmp_path).open().catalog
    assert [catalog.titles.item_position(name) for name in ("007", "7", 7, "a b")] == [0, 1, 1, 2]
    assert catalog.names([2, 0, 2])[0] == ["a b", "007", "a b"]
    assert catalog.users.position("07") == 1
    assert catalog.users.position(7) is None


def test_names_are_the_same_read_at_once_or_as_they_are_asked_for(catalog, monkeypatch):
    monkeypatch.setattr("qkvsearch.store.catalog.item_table.FEW_ITEMS", 0)
    catalog._names.clear()
    one_by_one = [catalog.names([position]) for position in (2, 0)]
    assert len(catalog._names) == 2
    catalog._names.clear()
    monkeypatch.undo()
    assert [catalog.names([position]) for position in (2, 0)] == one_by_one
    assert len(catalog._names) == len(catalog.rows.stored)


def test_names_follow_the_positions_asked_for(catalog):
    ids, titles = catalog.names([3, 0, 3])
    assert ids == [30, 4, 30]
    assert titles == ["Kettle (1995)", "Teapot, The (1999)", "Kettle (1995)"]
    assert catalog.names([]) == ([], [])


def test_text_is_what_the_catalog_says_search_reads(catalog, make_catalog):
    written = make_catalog()
    columns = ["title", "genres"]
    assert list(written.text_columns) == columns
    rows = [catalog.row(i) for i in range(5)]
    texts = [[(row[name] or "").replace("|", " ") for name in columns] for row in rows]
    assert ["\n".join(text) for text in texts] == written.texts()


@pytest.mark.parametrize("user", [12, "12", 12.0])
def test_a_user_is_found_however_written(catalog, user):
    assert catalog.users.position(user) == 1


def test_an_unknown_user_is_none_or_an_error_that_names_no_other(catalog):
    assert catalog.users.position(13) is None
    assert catalog.users.position(12) is not None
    assert catalog.users.position(112) is None
    assert str(catalog.users.unknown(112)) == "no user '112'"


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("Kettle, The (1995)", "kettle"),
        ("An Anchor", "anchor"),
        ("Été, L' (1980)", "été, l'"),
        ("Les Amis (1980-1984)", "amis"),
        ("The", "the"),
        ("Theatre", "theatre"),
        ("2001 (1968)", "2001"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
    ],
)
def test_title_key_drops_what_people_forget(title, key):
    assert title_key(title) == key


@given(st.text("aBc é", min_size=1).map(str.strip), st.integers(1000, 9999))
def test_title_key_knows_no_case_year_or_place_of_the_article(name, year):
    name = "x" + name  # so that it is no article itself
    assert title_key(f"{name}, The ({year})") == title_key(f"the {name.upper()}") == title_key(name)


@pytest.mark.parametrize("spelling", ["004", "4e0", "04.0", "+4"])
def test_an_id_is_not_found_by_what_sqlite_takes_for_the_same_number(catalog, spelling):
    with pytest.raises(UnknownIdError):
        catalog.titles.item_position(spelling)
    assert catalog.users.position("0" + "12") is None


def test_a_condition_asked_again_is_not_run_again_and_nobody_can_change_it(catalog, monkeypatch):
    first = catalog.conditions.mask(("year > ?", [1990]))
    with pytest.raises(ValueError, match="read-only"):
        first[:] = True
    asked = "qkvsearch.store.catalog.conditions.matching_in_all"
    monkeypatch.setattr(asked, lambda *_: pytest.fail("run again"))
    assert catalog.conditions.mask(("year > ?", (1990,))) is first
    for other in (("year > ?", [1990.0]), "year > 1990", ("year > ?", [1991])):
        with pytest.raises(pytest.fail.Exception):
            catalog.conditions.mask(other)


def test_a_condition_that_failed_fails_again(catalog):
    for _ in range(2):
        with pytest.raises(QkvError, match="no such column"):
            catalog.conditions.mask("nothing > 1990")
        with pytest.raises(QkvError, match="value 1"):
            catalog.conditions.mask(("year > ?", [object()]))


ODD = [
    "it's", "a\x1fb", "", None, "nul\0l", 5, -3, 0.1, 1e300, -2.5e-7, 2**60, "NULL", "5", "猫",
    None, float("inf"), "X'00'", 1 / 3,
]  # fmt: skip


@pytest.mark.parametrize("odd", [ODD, [c for c in ODD if not isinstance(c, str)], ["a", "b", "a"]])
def test_cells_are_the_ones_that_were_stored(tmp_path, odd):
    rows = [(f"i{i:02}", "title\x1f" if i == 2 else "t", cell) for i, cell in enumerate(odd)]
    columns = [("id", "TEXT"), ("title", "TEXT"), ("cell", "")]
    write_catalog(tmp_path / "items.db", CatalogRows(columns, rows))
    found = SegmentCatalog(tmp_path / "items.db")
    different, codes, at = found.cells_by_code("cell")
    assert at.tolist() == list(range(len(odd)))
    cells = [different[code] for code in codes]
    assert [(type(cell), cell) for cell in cells] == [(type(cell), cell) for cell in odd]
    assert list(found.title_keys()) == [(i, title_key(row[1])) for i, row in enumerate(rows)]
