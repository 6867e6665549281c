"""Look-ups in several segments are those in the one catalog that they make."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from random import Random
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

from qkvsearch.errors import DamagedError, QkvError, WorkspaceError
from qkvsearch.store import StoredCatalog
from qkvsearch.store.catalog.file import CatalogRows, write_catalog
from qkvsearch.store.catalog.segment import SegmentCatalog
from qkvsearch.store.catalog.title_keys import title_key
from qkvsearch.store.records import RecordsDatabase
from qkvsearch.store.records.build_records import BuildRecords
from qkvsearch.store.row_map import RowMap
from qkvsearch.tables.catalog import Catalog
from qkvsearch.tables.ids import Ids

COLUMNS = [("title", "TEXT"), ("year", "INTEGER"), ("genres", "TEXT"), ('a "price"', "REAL")]
IDS = {
    "whole": [str(n) for n in (-3, 0, 7, 10, 12, 30, 100, 101, 2**53 + 1, 2**53, 5, 6, 8, 9)],
    "text": ["007", "7", "a", "A", "b\0c", "b", "é", "Ω", "1e0", "1", "a b", "%", "{x}", "7.0"],
    "folded": ["Ann", "bob", "Éva", "straße", "x", "Yy", "Z1", "z2", "q", "R", "s", "tT", "u", "v"],
}
TITLES = [
    "Rope (1948)", "The Rope", "rope", "Kettle, The (1995)", "Kettle", "Anchor", "7", "a", "30",
    "Teapot (blue) (1999)", "A Teapot", "bob", "Łódź",
]  # fmt: skip
UNKNOWN = ["nobody", "07", "1e400", "\ud800", "no\0body", "no\0\ud800", ""]
USERS = ["5", "12", "700"]
CONDITIONS = [
    "year > 1990", "title LIKE '%rope%'", "year IS NULL", "genres = 'War' OR year < 1960", "1",
    "id > '5'", "id < 50", '"a ""price""" >= 5', "title || genres LIKE '%e%'", "yeer > 1",
    "year = '1990'", "genres > 5", "abs(id) = 3", "year =",
]  # fmt: skip


NONE = np.zeros(0, dtype=np.int64)


class History:
    """What becomes of a catalog, and what it is in the end by hand: `items`, rows by id."""

    def __init__(self, folder, kind, seed, n_segments):
        self.random, self.kind, self.folder = Random(seed), kind, folder
        self.columns = [("id", "INTEGER" if kind == "whole" else "TEXT"), *COLUMNS]
        self.items, self.catalogs, self.tombstones = {}, [], set()
        self.after, self.origin, self.keys = [], [], []
        self.n_base = 0
        self.item_rows = {}  # id: (stored row, origin)
        self.add(self.random.sample(IDS[kind], self.random.randint(3, 10)))
        for _ in range(n_segments):
            if self.random.random() < 0.4 and len(self.items) > 1:
                self.remove(self.random.choice(list(self.items)))
            self.add(self.random.sample(IDS[kind], self.random.randint(1, 4)))

    def key(self, id_):
        return int(id_) if self.kind == "whole" else id_

    def cells(self, id_):
        random = self.random
        title = random.choice([*TITLES, id_])
        price = random.choice([None, 5, 5.5, 80.0])
        return (
            self.key(id_), title, random.choice([None, 1948, 1995, 2004.5]),
            random.choice([None, "War", "Drama|War"]), price,
        )  # fmt: skip

    def add(self, ids):
        ids = sorted(ids, key=self.key)
        start, keys = self.n_base + len(self.keys), list(map(self.key, ids))
        rows = {id_: self.cells(id_) for id_ in ids}
        path = self.folder / f"{len(self.catalogs)}.db"
        users = Ids(USERS, self.kind == "folded") if not self.catalogs else None
        write_catalog(path, CatalogRows(self.columns, rows.values(), self.kind == "folded"), users)
        self.catalogs.append(SegmentCatalog(path))
        if self.catalogs[1:]:
            before = self.catalogs[0].rows_before(Ids(ids, integer=self.kind == "whole"))
            assert before.tolist() == [sum(id_ < key for id_ in self.base) for key in keys]
            self.after += before.tolist()
            self.keys += keys
        else:
            self.n_base, self.base = len(ids), keys
        for row, id_ in enumerate(ids):
            origin = start + row if not self.catalogs[1:] else -1
            if id_ in self.item_rows:
                self.tombstones.add(self.item_rows[id_][0])
                origin = self.item_rows[id_][1]
            if self.catalogs[1:]:
                self.origin.append(origin)
            self.item_rows[id_] = (start + row, origin)
        self.items |= rows

    def remove(self, id_):
        del self.items[id_]
        self.tombstones.add(self.item_rows.pop(id_)[0])

    @property
    def rows(self):
        if not self.keys and not self.tombstones:
            return RowMap.plain(self.n_base)
        arrays = (sorted(self.tombstones), self.after, self.origin)
        return RowMap.joined(self.n_base, *(np.array(x, dtype=np.int64) for x in arrays), self.keys)

    def ids(self):
        return sorted(self.items, key=self.key)

    def expected(self):
        """Some of `answers` by hand."""
        everyone, position = self.ids(), {id_: i for i, id_ in enumerate(self.ids())}
        folded = {id_.casefold(): i for id_, i in position.items()}
        asked = [*IDS[self.kind], *UNKNOWN]
        if self.kind == "folded":
            asked += [id_.upper() for id_ in IDS[self.kind]]
            found = {id_: folded[id_.casefold()] for id_ in asked if id_.casefold() in folded}
        else:
            found = {id_: position[id_] for id_ in asked if id_ in position}
        cells = [self.items[id_] for id_ in everyone]
        keys = [title_key(title) for _, title, *_ in cells]
        return {
            "found": found,
            "known": {text: cells[i][:2] for text, i in found.items()},
            "ids": (everyone, list(map(self.key, everyone)), self.kind == "folded"),
            "empty": {
                name: sum(row[i] is None for row in cells)
                for i, (name, _) in enumerate(self.columns)
            },
            "titled by id": all(str(id_) == title for id_, title, *_ in cells),
            "also titles": sorted(
                id_ for id_, i in found.items()
                if any(key == title_key(id_) for j, key in enumerate(keys) if j != i)
            ),
        }  # fmt: skip

    def merged(self):
        """The same as one base."""
        path = self.folder / "merged.db"
        rows = [self.items[id_] for id_ in self.ids()]
        write_catalog(path, CatalogRows(self.columns, rows, self.kind == "folded"),
                      Ids(USERS, self.kind == "folded"))  # fmt: skip
        return opened([SegmentCatalog(path)], RowMap.plain(len(rows)))


def opened(catalogs, rows, facts=MappingProxyType({})):
    return StoredCatalog(catalogs, rows, facts)


def said(ask, *given):
    """The answer, or what the error says."""
    try:
        return ask(*given)
    except QkvError as error:
        return type(error), str(error)


def answers(catalog, kind):
    """By what was asked."""
    n_items = len(catalog.ids("items"))
    everyone = [*IDS[kind], *UNKNOWN]
    if kind == "folded":
        everyone += [id_.upper() for id_ in IDS[kind]]
    named = [
        *everyone, *TITLES, *(f"title:{title}" for title in TITLES), "id:7", "rop", "Ketle", 7, 7.0,
        30, None, "the anchr", "00007", "KETTLE", "STRASSE", "ANN", "x" * 60_000,
    ]  # fmt: skip
    order = Random(1).choices(range(n_items), k=9)
    whole, folds = catalog.are_whole("items"), catalog.fold_ids
    mask, users = catalog.conditions.mask, catalog.users
    records = BuildRecords(catalog, RecordsDatabase(catalog.segments[0].path.parent))
    return {
        "columns": (catalog.columns, catalog.sql_types, catalog.catalog_columns.names),
        "ids are": (whole, folds),
        "ids": (catalog.ids("items").texts, list(catalog.ids("items")), catalog.ids("items").fold),
        "users": (list(catalog.ids("users")), catalog.users.find([*USERS, "x", "0700"])),
        "cells": [(cells, list(map(type, cells))) for cells in catalog.all_cells()],
        "names": catalog.names(order),
        "none": (catalog.names([]), catalog.find_items([])),
        "cells of": catalog.cells(np.array(order), ["genres", 'a "price"', "id"]),
        "row": [catalog.row(position) for position in range(n_items)],
        "found": catalog.find_items(everyone),
        "known": catalog.ids_and_titles(everyone),
        "named": [said(catalog.titles.find_item, item) for item in named],
        "also titles": sorted(catalog.titles.also_titles(catalog.find_items(everyone))),
        "masks": [np.array(said(mask, where)).tolist() for where in CONDITIONS],
        "user": [(users.position(user), records.user_text(user)) for user in (5, "12", "x")],
        "unknown user": str(catalog.users.unknown("70")),
        "empty": catalog.empty_counts(),
        "titled by id": catalog.is_titled_by_id(),
    }  # fmt: skip


@pytest.mark.parametrize("kind", list(IDS))
@pytest.mark.parametrize("seed", range(4))
def test_segments_answer_as_the_one_catalog_that_they_make(tmp_path, kind, seed):
    history = History(tmp_path, kind, seed, n_segments=2 * seed)
    catalog, merged = opened(history.catalogs, history.rows), history.merged()
    assert list(catalog.all_cells()) == [history.items[id_] for id_ in history.ids()]
    found, expected = answers(catalog, kind), answers(merged, kind)
    for question, answer in [*history.expected().items(), *expected.items()]:
        assert found[question] == answer, question
    path = tmp_path / "written.db"
    write_catalog(path, CatalogRows.of_stored(catalog), catalog.ids("users"))
    written = opened([SegmentCatalog(path)], RowMap.plain(len(history.items)))
    assert answers(written, kind) == expected


def catalog_of(rows):
    frame = pd.DataFrame(rows, columns=["id", "title"]).astype({"id": str})
    return Catalog(Ids(frame["id"]), frame, ("title",))


def test_titles_may_all_be_ids(tmp_path):
    base, segment = catalog_of([(7, "7"), (8, "Eight")]), catalog_of([(8, "8"), (9, "9")])
    write_catalog(tmp_path / "0", CatalogRows.of(base), Ids([]))
    catalogs = [SegmentCatalog(tmp_path / name) for name in "01"]
    alone = opened(catalogs[:1], RowMap.plain(2))
    write_catalog(tmp_path / "1", CatalogRows.of_segment(segment, alone))
    rows = RowMap.joined(2, np.array([1]), np.array([1, 2]), np.array([1, -1]), [8, 9])
    assert not alone.is_titled_by_id()
    assert opened(catalogs, rows).is_titled_by_id()


@pytest.mark.parametrize("facts", [{"columns": [{"name": "Year", "stored": "year"}]}, {}])
def test_a_column_that_is_not_stored_is_damage(tmp_path, facts):
    write_catalog(tmp_path / "0", CatalogRows.of(catalog_of([(7, "a")])), Ids([]))
    if not facts:
        with closing(sqlite3.connect(tmp_path / "0")) as db:
            db.execute("ALTER TABLE items RENAME COLUMN title TO other")
    catalog = opened([SegmentCatalog(tmp_path / "0")], RowMap.plain(1), facts)
    for ask in (lambda: catalog.row(0), catalog.empty_counts):
        with pytest.raises(DamagedError, match="its columns are not those of the build"):
            ask()


@pytest.mark.parametrize("position", [None, "x", 5])
def test_a_position_that_is_no_row_is_damage(tmp_path, position):
    catalog = SegmentCatalog(tmp_path / "0").numbered(np.array([1, 0]), ids_as_text=False)
    for ask in (catalog.item_row, lambda row: list(catalog.by_item_row(iter([(row, "a")])))):
        with pytest.raises(DamagedError):
            ask(position)


def test_text_ids_stay_text_where_only_whole_numbers_are_left(tmp_path):
    write_catalog(tmp_path / "0", CatalogRows.of(catalog_of([("10", "a"), ("9", "b"), ("x", "c")])))
    catalog = opened(
        [SegmentCatalog(tmp_path / "0")], RowMap.joined(3, np.array([2]), *[NONE] * 2, [])
    )
    assert list(catalog.ids("items")) == catalog.names([0, 1])[0] == ["10", "9"]


def test_text_ids_that_join_whole_numbers_make_all_of_them_text(tmp_path):
    base = catalog_of([(7, "a"), (10, "b"), (100, "c")])
    write_catalog(tmp_path / "0", CatalogRows.of(base), Ids([]))
    alone = opened([SegmentCatalog(tmp_path / "0")], RowMap.plain(3))
    assert alone.are_whole("items")
    for name, rows in (("1", [("007", "d"), ("x", "e")]), ("2", [("8", "f")])):
        write_catalog(tmp_path / name, CatalogRows.of_segment(catalog_of(rows), alone))
    catalogs = [SegmentCatalog(tmp_path / name) for name in "012"]
    new = ["007", "x", "8"]
    before = np.concatenate([catalogs[0].rows_before(Ids(ids)) for ids in (new[:2], new[2:])])
    rows = RowMap.joined(3, np.array([1]), before, np.full(3, -1), new)
    assert [catalog.whole_ids for catalog in catalogs] == [True, False, True]
    ids = ["7", "10", "100", *new]
    catalog = opened(catalogs, rows.sorted_by([ids[row] for row in rows.stored]))
    everyone = ["007", "100", "7", "8", "x"]
    assert catalog.ids("items").texts == list(catalog.ids("items")) == everyone
    assert catalog.find_items([*everyone, "10"]) == {id_: i for i, id_ in enumerate(everyone)}
    path = tmp_path / "merged"
    write_catalog(path, CatalogRows.of_stored(catalog), catalog.ids("users"))
    merged = opened([SegmentCatalog(path)], RowMap.plain(5))
    assert list(merged.all_cells()) == [
        ("007", "d"),
        ("100", "c"),
        ("7", "a"),
        ("8", "f"),
        ("x", "e"),
    ]
    assert not merged.are_whole("items")


def test_cells_stay_what_they_are_in_a_column_of_the_base(tmp_path, make_catalog):
    base = make_catalog([(1, "One", 1999, "War", 5.5), (2, "Two", None, None, None)])
    write_catalog(tmp_path / "0", CatalogRows.of(base), Ids([]))
    stored = opened([SegmentCatalog(tmp_path / "0")], RowMap.plain(2))
    catalog = make_catalog([(3, "Three", 1999.5, "1", 5.0), (4, "Four", 2000, None, 5.0)])
    write_catalog(tmp_path / "1", CatalogRows.of_segment(catalog, stored))
    assert SegmentCatalog(tmp_path / "1").columns == SegmentCatalog(tmp_path / "0").columns
    rows = RowMap.joined(2, np.array([], int), np.array([2, 2]), np.array([-1, -1]), [3, 4])
    both = opened([SegmentCatalog(tmp_path / name) for name in "01"], rows)
    assert repr(list(both.all_cells())[2:]) == repr(
        [(3, "Three", 1999.5, "1", 5.0), (4, "Four", 2000, None, 5.0)]
    )
    narrow = replace(catalog, frame=catalog.frame.drop(columns="genres"))
    with pytest.raises(LookupError, match="columns"):
        CatalogRows.of_segment(narrow, stored)


def test_a_file_that_sqlite_cannot_read_is_named(tmp_path):
    history = History(tmp_path, "whole", seed=2, n_segments=3)
    # Which have read nothing yet.
    catalog = opened([SegmentCatalog(one.path) for one in history.catalogs], history.rows)
    path = history.catalogs[0].path
    content = bytearray(path.read_bytes())
    content[4096:] = b"x" * (len(content) - 4096)
    path.write_bytes(content)
    for ask in (
        lambda: catalog.names([0]),
        lambda: catalog.conditions.mask("year > 1990"),
        lambda: catalog.titles.item_position("Kettle"),
        lambda: list(catalog.all_cells()),
    ):
        with pytest.raises(DamagedError, match=r"0\.db: damaged: .*malformed") as error:
            ask()
        assert str(error.value.file) == str(path)


def test_a_catalog_is_asked_by_threads_at_once_and_closed(tmp_path):
    history = History(tmp_path, "text", seed=3, n_segments=5)
    catalog = opened(history.catalogs, history.rows)
    merged = history.merged()
    expected = list(merged.all_cells()), merged.conditions.mask("year > 1990").tolist()

    def ask(_):
        for _ in range(10):
            assert (
                list(catalog.all_cells()),
                catalog.conditions.mask("year > 1990").tolist(),
            ) == expected

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    catalog.close()
    for segment in history.catalogs:
        segment.path.unlink()  # which Windows would refuse were it open
    for ask in (lambda: catalog.names([0]), lambda: catalog.conditions.mask("year > 1990")):
        with pytest.raises(WorkspaceError, match="closed"):
            ask()
