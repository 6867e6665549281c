"""Look-ups in several segments are those in the one catalog that they make."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from qkvsearch.data.ids import Ids
from qkvsearch.errors import QkvError
from qkvsearch.workspace import Tables, composed
from qkvsearch.workspace.catalog_file import CatalogRows, write_catalog
from qkvsearch.workspace.rows import Rows
from qkvsearch.workspace.segment_catalog import SegmentCatalog

COLUMNS = [("title", "TEXT"), ("year", "INTEGER"), ("genres", "TEXT"), ('a "price"', "REAL")]
IDS = {
    "whole": [str(n) for n in (-3, 0, 7, 10, 12, 30, 100, 101, 2**53 + 1, 2**53, 5, 6, 8, 9)],
    "text": ["007", "7", "a", "A", "b\0c", "b", "é", "Ω", "1e0", "1", "a b", "%", "{x}", "7.0"],
    "folded": ["Ann", "bob", "Éva", "straße", "x", "Yy", "Z1", "z2", "q", "R", "s", "tT", "u", "v"],
}
TITLES = ["Rope (1948)", "The Rope", "rope", "Kettle, The (1995)", "Kettle", "Anchor", "7", "a", "30",
          "Teapot (blue) (1999)", "A Teapot", "bob", "Łódź"]  # fmt: skip
USERS = ["5", "12", "700"]
CONDITIONS = ["year > 1990", "title LIKE '%rope%'", "year IS NULL", "genres = 'War' OR year < 1960",
              "id > '5'", "id < 50", '"a ""price""" >= 5', "1", "title || genres LIKE '%e%'", "yeer > 1",
              "year = '1990'", "genres > 5", "abs(id) = 3", "year ="]  # fmt: skip


class History:
    """What becomes of a catalog, and what it is in the end by hand: `items`, rows by id."""

    def __init__(self, folder, kind, seed, n_segments):
        self.random, self.kind, self.folder = Random(seed), kind, folder
        self.columns = [("id", "INTEGER" if kind == "whole" else "TEXT"), *COLUMNS]
        self.items, self.catalogs, self.departed = {}, [], set()
        self.after, self.origin, self.keys = [], [], []
        self.n_base = 0
        self.place = {}  # id: (stored row, origin)
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
        start = self.n_base + len(self.keys)
        rows = {id_: self.cells(id_) for id_ in ids}
        path = self.folder / f"{len(self.catalogs)}.db"
        users = Ids(USERS, self.kind == "folded") if not self.catalogs else None
        write_catalog(path, CatalogRows(self.columns, rows.values(), self.kind == "folded"), users)
        self.catalogs.append(SegmentCatalog(path))
        if self.catalogs[1:]:
            before = self.catalogs[0].rows_before(Ids(ids, integer=self.kind == "whole"))
            self.after += before.tolist()
            self.keys += map(self.key, ids)
        else:
            self.n_base = len(ids)
        for row, id_ in enumerate(ids):
            origin = start + row if not self.catalogs[1:] else -1
            if id_ in self.place:
                self.departed.add(self.place[id_][0])
                origin = self.place[id_][1]
            if self.catalogs[1:]:
                self.origin.append(origin)
            self.place[id_] = (start + row, origin)
        self.items |= rows

    def remove(self, id_):
        del self.items[id_]
        self.departed.add(self.place.pop(id_)[0])

    @property
    def rows(self):
        if not self.keys and not self.departed:
            return Rows.plain(self.n_base)
        arrays = (sorted(self.departed), self.after, self.origin)
        return Rows.joined(self.n_base, *(np.array(x, dtype=np.int64) for x in arrays), self.keys)

    def ids(self):
        return sorted(self.items, key=self.key)

    def merged(self):
        """The same as one base."""
        path = self.folder / "merged.db"
        rows = [self.items[id_] for id_ in self.ids()]
        write_catalog(path, CatalogRows(self.columns, rows, self.kind == "folded"),
                      Ids(USERS, self.kind == "folded"))  # fmt: skip
        return opened([SegmentCatalog(path)], Rows.plain(len(rows)))


class NobodyRecorded:
    def user_text(self, user):
        return str(user)

    def user_names(self, most):
        return []


def opened(catalogs, rows):
    tables = Tables(catalogs, rows, {}, catalogs[0].path.parent)
    tables.__dict__["records"] = NobodyRecorded()
    return tables


def said(ask, *given):
    """The answer, or what the error says."""
    try:
        return ask(*given)
    except QkvError as error:
        return type(error), str(error)


def answers(tables, kind):
    """By what was asked."""
    n_items = len(tables.ids("items"))
    everyone = [*IDS[kind], "nobody", "07", "1e400", "\ud800", "no\0body", ""]
    named = [*everyone, *TITLES, *(f"title:{title}" for title in TITLES), "id:7", "rop", "Ketle",
             "the anchr", "00007", 7, 7.0, 30, None, "KETTLE", "STRASSE", "ANN", "x" * 60_000]  # fmt: skip
    order = Random(1).choices(range(n_items), k=9)
    whole, folds = tables.are_whole("items"), tables.fold_ids
    return {
        "columns": (tables.columns, tables.sql_types, whole, folds, tables.catalog_columns.names),
        "ids": (tables.ids("items").texts, list(tables.ids("items")), tables.ids("items").fold),
        "users": (list(tables.ids("users")), tables.users_known([*USERS, "x", "0700"])),
        "cells": [(cells, list(map(type, cells))) for cells in tables.cells()],
        "each": list(tables.each_cells()) == tables.cells(),
        "names": tables.names(order),
        "none": (tables.names([]), tables.find_items([])),
        "cells of": tables.cells_of(np.array(order), ["genres", 'a "price"', "id"]),
        "row": [tables.row(position) for position in range(n_items)],
        "found": (tables.find_items(everyone), tables.known([text.lower() for text in everyone])),
        "known": tables.known(everyone),
        "named": [said(tables.item_named, item) for item in named],
        "also titles": sorted(tables.also_titles({text: tables.find_items([text]).get(text, -1)
                                                  for text in everyone})),
        "masks": [np.array(said(tables.mask, where, n_items)).tolist() for where in CONDITIONS],
        "user": [(tables.user_position(user), tables.user_text(user)) for user in (5, "12", "x")],
        "unknown user": str(tables.unknown_user("70")),
        "empty": tables.empty_counts(),
        "titled by id": tables.is_titled_by_id(),
    }  # fmt: skip


@pytest.mark.parametrize("kind", list(IDS))
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("small", [0, 2, 1000])
def test_segments_answer_as_the_one_catalog_that_they_make(
    tmp_path, monkeypatch, kind, seed, small
):
    monkeypatch.setattr(composed, "SMALL", small)
    history = History(tmp_path, kind, seed, n_segments=seed % 6)
    tables, merged = opened(history.catalogs, history.rows), history.merged()
    assert tables.cells() == [history.items[id_] for id_ in history.ids()]
    found, expected = answers(tables, kind), answers(merged, kind)
    for question, answer in expected.items():
        assert found[question] == answer, question
    path = tmp_path / "written.db"
    write_catalog(path, CatalogRows.of_tables(tables), tables.ids("users"))
    assert answers(opened([SegmentCatalog(path)], Rows.plain(len(history.items))), kind) == expected
